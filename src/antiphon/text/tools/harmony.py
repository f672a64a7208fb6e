"""`<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{…}<|call|>`: gpt-oss.

Decides which headers begin a call: those with a recipient, which stands before or behind the
channel. The other headers and the ends of messages are markers without meaning.
"""

from __future__ import annotations

import re

from antiphon.text.tools.headed import Headed

# Also read where no tools are declared, hence a name of its own.
SKIP = (
    "<|start|>assistant",
    "<|channel|>final",
    "<|channel|>final<|message|>",
    "<|channel|>final <|constrain|>json<|message|>",
    "<|channel|>final json<|message|>",
    "<|channel|>commentary",
    "<|channel|>commentary<|message|>",
    "<|constrain|>",
    "<|message|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
)

HARMONY = Headed(
    name="harmony",
    openers=(
        "<|channel|>commentary to=",
        "<|channel|>analysis to=",
        "<|channel|>final to=",
        "<|channel|> to=",
        "<|start|>assistant to=",
    ),
    # The prompt ends with `<|start|>assistant`, so that a recipient may come first.
    leading=("to=functions.",),
    head=re.compile(r"(?s)(?:to=)?([\w.\-]+)(?![\w.\-]).*?<\|message\|>"),
    closers=("<|call|>", "<|end|>", "<|return|>"),
    skip=SKIP,
    inner=("<|start|>", "<|channel|>"),
)
