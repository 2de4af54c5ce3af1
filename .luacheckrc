-- Wireshark runs Lua 5.2 (up to 4.2) or 5.4 (from 4.4 on): only what all versions share, plus Wireshark's own globals.
-- `bit32` and `bit` are left out on purpose, since 5.4 has neither.
stds.wireshark = {
    read_globals = {
        "Address", "ByteArray", "Column", "Dir", "Dissector", "DissectorTable", "Dumper", "Field", "File", "FileHandler",
        "Int64", "Listener", "NSTime", "Pref", "ProgDlg", "Proto", "ProtoExpert", "ProtoField", "PseudoHeader", "Struct",
        "TextWindow", "TreeItem", "Tvb", "TvbRange", "UInt64",
        "base", "expert", "frametype", "ftypes", "wtap", "wtap_filetypes",
        "all_field_infos", "apply_filter", "copy_to_clipboard", "datafile_path", "dissect_tcp_pdus", "format_date",
        "format_time", "get_filter", "get_preference", "get_version", "gui_enabled", "new_dialog", "open_capture_file",
        "persconffile_path", "redissect_packets", "register_filehandler", "register_menu", "register_postdissector",
        "reload_lua_plugins", "reload_packets", "report_failure", "retap_packets", "set_filter", "set_plugin_info",
        "DESEGMENT_ONE_MORE_SEGMENT",
        "ENC_ASCII", "ENC_BIG_ENDIAN", "ENC_ISO_8859_1", "ENC_LITTLE_ENDIAN", "ENC_NA", "ENC_STRING", "ENC_UTF_8",
        "MENU_ANALYZE_UNSORTED", "MENU_PACKET_ANALYZE_UNSORTED", "MENU_PACKET_STAT_UNSORTED", "MENU_STAT_GENERIC",
        "MENU_STAT_UNSORTED", "MENU_TOOLS_UNSORTED",
        "PI_CHAT", "PI_CHECKSUM", "PI_COMMENT", "PI_DEBUG", "PI_ERROR", "PI_MALFORMED", "PI_NOTE", "PI_PROTOCOL",
        "PI_REQUEST_CODE", "PI_RESPONSE_CODE", "PI_SECURITY", "PI_SEQUENCE", "PI_UNDECODED", "PI_WARN",
    },
}
std = "min+wireshark"
max_line_length = 120
exclude_files = { ".venv/**", "build/**" }
