/** A value that must not be shown or stored. `[secret NAME]` takes its place. */
export interface Secret {
  name: string
  value: string
  /**
   * Whether it is looked for encoded and across lines too, as what programs make of it; left out: only as it is written. More of a
   * text that comes in pieces is held back then, the last character of nearly every piece.
   */
  isEncoded?: true
}

/** The secrets of the project that a session works in. Their values lie in the records, out of reach of the model. */
export interface SessionSecrets {
  /** A secret as it is now; null if there is none of that name. A `UserError` for one that is kept but cannot be read. */
  get(key: string): Promise<StoredSecret | null>
  /**
   * Absolute paths that no command of an agent may read or make, as of now: `.env` files, the records, files in which a
   * secret was found. Synchronous and bounded; each path's folder is there.
   */
  unreadable(): readonly string[]
  /**
   * Searches the files of the work directory that were made or changed since for the values of secrets and their forms.
   * @param since ms, wall clock
   * @returns paths relative to the work directory, with `/`, of files that are not hidden yet; of a git directory that lies elsewhere absolute ones; `problem`: one sentence if not all could be searched
   */
  search(
    since: number,
    secrets: readonly Secret[],
    signal: AbortSignal,
  ): Promise<{ files: readonly string[]; problem: string | null }>
  /** These files (as `search` names them) are unreadable from now on, and left out of savepoints and diffs. Kept in the records. */
  hide(files: readonly string[]): Promise<void>
  /** What was stored a moment ago is known to the redactor from here on. */
  refresh(): void
}

/** A secret of a project as it is kept. */
export interface StoredSecret {
  key: string
  value: string
  /** The command that says whether the secret is right, by its exit code; null if a person named none. */
  check: string | null
}

/** Whether a file, as `search` names it, keeps objects of git: commits, and the files in them. */
export function keepsGitObjects(path: string): boolean {
  return /(?:^|\/)objects\/(?:[0-9a-f]{2}\/[0-9a-f]{38,62}|pack\/[^/]+)$/.test(path)
}

/** The most characters of a secret's name. */
const MOST_KEY_CHARACTERS = 64
/** The most bytes of a secret's value, in UTF-8. */
export const MOST_VALUE_BYTES = 64 * 1024

/** Why a text cannot be the name of a secret, as one sentence; null if it can. */
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

/** Variables that the system, a shell or a usual tool reads by itself, and whose value changes what it does. */
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
/** Of tools that read a password or a token from a variable of their own as well. */
const TAKEN_OF_TOOLS =
  /^(?:PIP|UV|CARGO|YARN|PNPM|COREPACK|DOCKER|COMPOSE|BUNDLE|RUBY|MALLOC|ASAN|LSAN|TSAN|UBSAN|DBUS|SYSTEMD)_(?!.*(?:TOKEN|PASSWORD|SECRET|KEY)$)/

function isTaken(key: string): boolean {
  return TAKEN.has(key) || TAKEN_BEGINNINGS.test(key) || TAKEN_OF_TOOLS.test(key)
}

/** Why bytes or a text cannot be the value of a secret, as one sentence without the value; null if they can. */
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

/** Fewer characters would be found in texts that have nothing to do with the secret. */
const LEAST_CHARACTERS = 8

/** Whether a value is too short to be looked for: the output of commands that use it is withheld whole. */
export function isShortSecret(value: string): boolean {
  return value.trim().length < LEAST_CHARACTERS
}
