"""The paper's tables and figures: `python -m trainers.reproduce`.

`experiments` and `rows` hold the paper, `folder` ours; `running` trains row
after row, `report` sets both side by side.
"""
