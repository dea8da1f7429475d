"""How fast it runs here: `python -m trainers.benchmark`.

`settings` become `tasks`, which `measuring` has a `measurer` do one by one;
`results` hold the numbers, `report` and `plots` show them.
"""
