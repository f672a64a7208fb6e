"""`<｜tool▁call▁begin｜>…<｜tool▁sep｜>…<｜tool▁call▁end｜>`: DeepSeek V3, R1 and V3.1.

Decides between the two forms: the older one has the word `function` before the separator and
the arguments in a fence, the newer one has the name there and the arguments bare.
"""

from __future__ import annotations

import re

from antiphon.text.tools.headed import Headed

_END = "<｜tool▁call▁end｜>"

DEEPSEEK = Headed(
    name="deepseek",
    openers=("<｜tool▁call▁begin｜>",),
    head=re.compile(
        r"\s*function<｜tool▁sep｜>\s*([^\s<]+)\s*```(?:json)?\s"
        r"|\s*(?!function<)([^\s<]+)\s*<｜tool▁sep｜>"
    ),
    closers=(_END, f"```{_END}", f"```\n{_END}"),
    skip=("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"),
    inner=("<｜tool▁sep｜>", _END),
)
