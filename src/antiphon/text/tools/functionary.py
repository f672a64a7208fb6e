"""`<function=NAME>{…}</function>`, and `>>>NAME` before a line of JSON: Functionary 3.1 and 3.2.

Decides that in the second form an answer begins with a name, since the prompt ends with the
`>>>`, and that the name `all` stands before ordinary text.
"""

from __future__ import annotations

import re

from antiphon.text.tools.headed import Headed

FUNCTIONARY_V3_1 = Headed(
    name="functionary_v3_1",
    openers=("<function=",),
    head=re.compile(r"([\w.\-]+)>"),
    begun=re.compile(r"[\w.\-]*"),
    closers=("</function>",),
    inner=("</function>",),
)
FUNCTIONARY_V3_2 = Headed(
    name="functionary_v3_2",
    openers=(">>>",),
    leading=("",),
    head=re.compile(r"([\w.\-]+)\n"),
    begun=re.compile(r"[\w.\-]*"),
    said=frozenset({"all"}),
)
