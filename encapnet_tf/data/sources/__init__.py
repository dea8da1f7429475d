"""Where data sets are found: `npz` files, folders of images, or by name.

`catalogue` lists the names; `named` finds their files, or has tfds fetch them.
`own` makes a data set of the parts that a file or a folder has.
"""
