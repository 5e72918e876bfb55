/** A value that must not be shown or stored. `[secret NAME]` replaces it. */
export interface Secret {
  name: string
  value: string
  /**
   * True: it is also searched for encoded and across lines, as programs print it. Left out: only as written. A streamed text
   * is then held back more: the last character of nearly every piece.
   */
  isEncoded?: true
}

/** The secrets of a session's project. Their values are in the records, where the model cannot read them. */
export interface SessionSecrets {
  /** Resolves with the current secret; null: none of that name. Rejects with a `UserError` if it cannot be read. */
  get(key: string): Promise<StoredSecret | null>
  /**
   * Absolute paths that no agent's command may read or create, as of now: `.env` files, the records, files that contain a
   * secret. Synchronous and bounded; each path's folder exists.
   */
  unreadable(): readonly string[]
  /**
   * Searches new and changed files of the work directory for secrets and their encoded forms.
   * @param since ms, wall clock
   * @returns paths of files that are not hidden yet, relative to the work directory, with `/`; absolute in an external git
   * directory. `problem`: a sentence if not all could be searched
   */
  search(
    since: number,
    secrets: readonly Secret[],
    signal: AbortSignal,
  ): Promise<{ files: readonly string[]; problem: string | null }>
  /** Makes these files (paths of `search`) unreadable and drops them from savepoints and diffs. Stored in the records. */
  hide(files: readonly string[]): Promise<void>
  /** Reloads the redactor, so that it knows newly stored secrets. */
  refresh(): void
}

/** A stored secret of a project. */
export interface StoredSecret {
  key: string
  value: string
  /** The command that tests the secret, by its exit code; null: none. */
  check: string | null
}

/** Returns true if a path of `search` is a git object file: commits, and the files in them. */
export function keepsGitObjects(path: string): boolean {
  return /(?:^|\/)objects\/(?:[0-9a-f]{2}\/[0-9a-f]{38,62}|pack\/[^/]+)$/.test(path)
}

/** Length limit of a secret's name, characters. */
const MOST_KEY_CHARACTERS = 64
/** Size limit of a secret's value, UTF-8 bytes. */
export const MOST_VALUE_BYTES = 64 * 1024

/** Returns why a text is not a valid secret name, one sentence; null: it is valid. */
export function problemOfKey(key: string): string | null {
  if (key.length > MOST_KEY_CHARACTERS) {
    return `The name of a secret has at most ${MOST_KEY_CHARACTERS} characters; this one has ${key.length}.`
  }
  if (!/^[A-Z][A-Z0-9_]*$/.test(key)) {
    const shown = key.replace(/[^\x20-\x7e]/g, '?')
    return `"${shown}" cannot be the name of a secret; use capital letters, digits and _, with a letter first, as in SERVICE_API_KEY.`
  }
  if (!isTaken(key)) return null
  return `${key} cannot be the name of a secret, because it changes how programs work; use another one, such as MY_${key}.`
}

/** Variables that the system, shells or common tools read, and that change what they do. */
const TAKEN: ReadonlySet<string> = new Set(
  `PATH HOME USER LOGNAME SHELL PWD OLDPWD CDPATH IFS ENV BASH_ENV BASHOPTS SHELLOPTS POSIXLY_CORRECT PROMPT_COMMAND PS0 PS1
  PS2 PS3 PS4 TERM TERMINFO TERMCAP LANG LANGUAGE TZ TZDIR TMP TEMP TMPDIR EDITOR VISUAL PAGER MANPAGER BROWSER LESS LESSOPEN
  LESSCLOSE GLOBIGNORE EXECIGNORE HISTFILE INPUTRC FPATH ZDOTDIR DISPLAY HOSTALIASES RES_OPTIONS LOCALDOMAIN GCONV_PATH
  NLSPATH LOCPATH RESOLV_HOST_CONF GETCONF_DIR MALLOC_CHECK_ MALLOC_TRACE HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY FTP_PROXY
  CC CXX CPP AR LD AS NM MAKE MAKEFLAGS MFLAGS GNUMAKEFLAGS MAKEFILES CFLAGS CXXFLAGS CPPFLAGS LDFLAGS CPATH LIBRARY_PATH
  C_INCLUDE_PATH CPLUS_INCLUDE_PATH OBJC_INCLUDE_PATH COMPILER_PATH RUSTC RUSTFLAGS RUSTDOC RUSTDOCFLAGS RUSTC_WRAPPER
  RUSTC_WORKSPACE_WRAPPER RUSTC_BOOTSTRAP GOPATH GOROOT GOFLAGS GOPROXY GOENV GOBIN GOTOOLCHAIN CLASSPATH JAVA_HOME
  JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS _JAVA_OPTIONS M2_HOME NODE_OPTIONS NODE_PATH NODE_EXTRA_CA_CERTS NODE_TLS_REJECT_UNAUTHORIZED
  NODE_REPL_EXTERNAL_MODULE RUBYOPT RUBYLIB GEM_HOME GEM_PATH BUNDLE_GEMFILE PERL5LIB PERL5OPT PERL5DB PERLLIB PERL5SHELL
  PHPRC PHP_INI_SCAN_DIR LUA_INIT LUA_PATH LUA_CPATH R_PROFILE R_HOME OPENSSL_CONF OPENSSL_MODULES OPENSSL_ENGINES SSLKEYLOGFILE
  SSL_CERT_FILE SSL_CERT_DIR CURL_HOME CURL_CA_BUNDLE REQUESTS_CA_BUNDLE WGETRC NETRC KRB5_CONFIG COMSPEC PATHEXT SYSTEMROOT
  WINDIR APPDATA LOCALAPPDATA PROGRAMDATA USERPROFILE HOMEDRIVE HOMEPATH CI TERM_PROGRAM COLUMNS LINES SUDO_ASKPASS PKG_CONFIG
  VIRTUAL_ENV CONDA_PREFIX`.split(/\s+/),
)
const TAKEN_BEGINNINGS =
  /^(?:(?:LD|DYLD|GIT|SSH|CODEX|CODEMACHINE|NPM_CONFIG|LC|XDG|BASH_FUNC)_|PYTHON|GLIBC_TUNABLES$|NODE_(?:V8|DEBUG|ICU|PENDING|PRESERVE|REDIRECT|COMPILE|DISABLE)_)/
/** Variables of tools that also read a password or token from one. */
const TAKEN_OF_TOOLS =
  /^(?:PIP|UV|CARGO|YARN|PNPM|COREPACK|DOCKER|COMPOSE|BUNDLE|RUBY|MALLOC|ASAN|LSAN|TSAN|UBSAN|DBUS|SYSTEMD)_(?!.*(?:TOKEN|PASSWORD|SECRET|KEY)$)/

function isTaken(key: string): boolean {
  return TAKEN.has(key) || TAKEN_BEGINNINGS.test(key) || TAKEN_OF_TOOLS.test(key)
}

/** Returns why a value is not valid, one sentence without the value; null: it is valid. */
export function problemOfValue(value: Uint8Array | string): string | null {
  const bytes = typeof value === 'string' ? new TextEncoder().encode(value) : value
  if (bytes.length === 0) return 'The value is empty; a secret has at least one byte.'
  if (bytes.length > MOST_VALUE_BYTES) return `The value has more than ${MOST_VALUE_BYTES / 1024} KiB.`
  if (bytes.includes(0)) return 'The value contains a zero byte, and a variable cannot.'
  if (typeof value === 'string' ? !value.isWellFormed() : !isUtf8(value)) return 'The value is not UTF-8 text.'
  return null
}

function isUtf8(bytes: Uint8Array): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    return true
  } catch {
    return false
  }
}

/** Shorter values would match unrelated texts. */
const LEAST_CHARACTERS = 8

/** Returns true if a value is too short to search for; then the whole output of commands that use it is withheld. */
export function isShortSecret(value: string): boolean {
  return value.trim().length < LEAST_CHARACTERS
}
