def wrong_place(protocol, path, where):
    return ""
