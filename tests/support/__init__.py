"""What the tests share: waiting, processes, servers of their own, and the fixtures over them."""
