"""The command line: `program` knows the commands, and the module of each reads its arguments.

What a large one does is in a module of its own, so that `--help` imports little: `show` and `showing`, `diff` and
`diffing`, `stats` and `figures`, `tree` and `drawing` … What they answer to a shell is in `codes`, what they print with
`--json` in `lines` and `store_lines`.
"""
