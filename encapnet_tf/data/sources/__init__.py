"""Where data sets are found: an .npz file, folders of images, or by name.

`catalogue` lists the names; `named` finds their files, or has tfds fetch them.
"""
