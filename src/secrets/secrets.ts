import { closeSync, constants, fstatSync, openSync, readSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '../base/clock.ts'
import { messageOf, systemErrorCode } from '../base/errors.ts'
import { type Redactor, redactorOf, type Secret } from '../base/redactor.ts'

/**
 * A redactor of the secrets of an environment and of codex's home (absolute path). `keys`: names of variables that hold one,
 * whatever they are called. Reads codex's files again when they
 * have changed, and goes on knowing the tokens that were in them before.
 */
export function openRedactor(options: {
  env: Readonly<NodeJS.ProcessEnv>
  codexHome: string
  clock: Clock
  keys?: readonly string[]
}): Redactor {
  const { env, codexHome, clock, keys = [] } = options
  const variables = secretVariables(env, keys)
  const files = FILES.map(name => ({ path: join(codexHome, name), stamp: '' as string | null }))
  const tokens = new Map<string, Secret>()
  let lookedAt = Number.NEGATIVE_INFINITY
  let redactor = redactorOf(variables)
  const current = (): Redactor => {
    const now = clock.monotonic()
    if (now - lookedAt < LOOK_MS) return redactor
    lookedAt = now
    let isNew = false
    for (const file of files) {
      const stamp = stampOf(file.path)
      if (stamp === file.stamp) continue
      file.stamp = stamp
      for (const secret of secretsInFile(file.path)) {
        isNew ||= !tokens.has(secret.value)
        tokens.set(secret.value, secret)
      }
    }
    if (isNew) redactor = redactorOf([...variables, ...[...tokens.values()].slice(-MOST_KEPT)])
    return redactor
  }
  return {
    text: text => current().text(text),
    event: event => current().event(event),
    line: line => current().line(line),
    unfinished: text => current().unfinished(text),
  }
}

/** Codex's login, and that of its MCP servers. */
const FILES = ['auth.json', '.credentials.json']
/** How often the files are looked at, at most, ms: codex renews its tokens while it runs. */
const LOOK_MS = 200
/** Tokens that are remembered; the oldest are forgotten first. More than codex renews in a night. */
const MOST_KEPT = 200

/**
 * The secrets in an environment: of variables whose names look secret or are among `keys`, and what is secret in the
 * addresses in any variable.
 */
export function secretVariables(env: Readonly<NodeJS.ProcessEnv>, keys: readonly string[] = []): Secret[] {
  const secrets: Secret[] = []
  for (const [name, value = ''] of Object.entries(env)) {
    const isSecret = keys.includes(name) ? isUncommon(value) : nameLooksSecret(name) && valueLooksSecret(name, value)
    if (isSecret) secrets.push({ name, value })
    for (const secret of secretsInAddresses(value)) secrets.push({ name, value: secret })
  }
  return secrets
}

/** Passwords, and tokens in the place of the user, as they are written and as they are meant. */
function secretsInAddresses(text: string): string[] {
  return [...text.matchAll(ADDRESS)].flatMap(([, user = '', password = '']) => {
    const secret = isUncommon(password) ? password : looksLikeToken(user) ? user : null
    return secret === null ? [] : [...new Set([secret, decoded(secret)])].filter(isUncommon)
  })
}

// Without the scheme: to look for its beginning takes long in a long text that has none.
const ADDRESS = /:\/\/([^\s:/@?#"]*)(?::([^\s/@]*))?@/g

/** False for the names of persons and services: `git`, `deploying-machine`. */
function looksLikeToken(user: string): boolean {
  return user.length >= 20 && /\d/.test(user) && /[a-z]/i.test(user)
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Changes whenever the file does: inode, size and times. Null if there is no file that can be read. */
function stampOf(path: string): string | null {
  try {
    const stat = statSync(path, { bigint: true, throwIfNoEntry: false })
    return stat === undefined ? null : [stat.ino, stat.size, stat.mtimeNs, stat.ctimeNs].join(' ')
  } catch (error) {
    if (systemErrorCode(error) === null) throw error
    return null
  }
}

const MOST_BYTES = 1024 * 1024

/**
 * The tokens and keys in a JSON file of at most 1 MiB, whatever its shape: texts under a key that looks secret, and long
 * texts without a space. Empty if the file is missing, too long or no JSON. Synchronous: no text can be let through while
 * the file is being read.
 */
function secretsInFile(path: string): Secret[] {
  const text = readBounded(path)
  if (text === null) return []
  try {
    return [...secretsIn(JSON.parse(text), null, false)]
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof RangeError) return []
    throw new Error(`${path}: ${messageOf(error)}`, { cause: error })
  }
}

function* secretsIn(value: unknown, name: string | null, isSecret: boolean): Generator<Secret> {
  if (typeof value === 'string') {
    const own = name ?? 'text'
    if (valueLooksSecret(own, value) && (isSecret || looksRandom(value))) yield { name: own, value }
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, child] of Object.entries(value)) {
      const own = Array.isArray(value) ? name : key
      yield* secretsIn(child, own, Array.isArray(value) ? isSecret : nameLooksSecret(key))
    }
  }
}

/** Long, in one piece, and neither an address nor the id of an account. */
function looksRandom(text: string): boolean {
  return (
    /^[\w.~+/=-]{32,}$/.test(text) && /\d/.test(text) && !/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)
  )
}

function readBounded(path: string): string | null {
  let fd: number | null = null
  try {
    // Without O_NONBLOCK (absent on Windows) the opening of a named pipe waits for its other end.
    fd = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
    const stat = fstatSync(fd)
    if (!stat.isFile() || stat.size > MOST_BYTES) return null
    const bytes = Buffer.alloc(stat.size)
    return bytes.toString('utf8', 0, readSync(fd, bytes, 0, stat.size, 0))
  } catch (error) {
    if (systemErrorCode(error) === null) throw error
    return null
  } finally {
    if (fd !== null) closeSync(fd)
  }
}

/** Whether a variable or a key of this name is likely to hold a secret: `MY_API_TOKEN2`, `dbPassword`, not `KEYBOARD`. */
function nameLooksSecret(name: string): boolean {
  const words = wordsOf(name)
  // `TOKEN_FILE`, `KEY_SIZE`: about a secret, and none.
  if (ABOUT_SECRETS.has(words.at(-1) ?? '')) return false
  return words.some(word => SECRET_WORDS.has(word) || SECRET_ENDINGS.test(word))
}

/** Whether the value of this name can be a secret: long enough, not a common word, not a path. */
function valueLooksSecret(name: string, value: string): boolean {
  return isUncommon(value) && (!looksLikePath(value.trim()) || NEVER_PATH.test(wordsOf(name).join('')))
}

/** At least 8 characters, and not a common word. */
function isUncommon(value: string): boolean {
  const text = value.trim()
  return text.length >= 8 && !PLAIN_WORDS.has(text.toLowerCase())
}

/** In capitals, without the numbers at their ends: `apiKey2` is `API` and `KEY`. */
function wordsOf(name: string): string[] {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toUpperCase()
    .split(/[^A-Z0-9]+/)
    .map(word => word.replace(/\d+$/, ''))
    .filter(word => word !== '')
}

function looksLikePath(text: string): boolean {
  // A key in base64 may begin with a slash, and hold more of them.
  if (/^\/[A-Za-z0-9+/=]{31,}$/.test(text) && (/[+=]/.test(text) || text.lastIndexOf('/') === 0)) return false
  return /^(?:\/|~[\w.-]*\/|\.{1,2}\/|[A-Za-z]:[\\/]|\\\\)[^\n]*$/.test(text)
}

/** Names of keys in base64, which cannot always be told from a path. */
const NEVER_PATH = /SECRETACCESSKEY$/
const SECRET_WORDS: ReadonlySet<string> = new Set(
  'AUTH BEARER COOKIE CREDENTIAL CREDENTIALS CREDS JWT KEY KEYS PASS PAT PWD SECRETS TOKENS WEBHOOK'.split(' '),
)
const SECRET_ENDINGS =
  /(?:PASSWORDS?|PASSWD|PASSPHRASE|SECRET|TOKEN|CREDENTIALS?|SSHPASS|(?:API|ACCESS|PRIVATE|SECRET)KEYS?)$/
const ABOUT_SECRETS: ReadonlySet<string> = new Set(
  `AGENT ALGORITHM BACKEND COUNT DIR DIRECTORY DOMAIN ENABLED ENDPOINT EXPIRES EXPIRY FILE FILENAME FOLDER FORMAT HELPER
  LENGTH LIMIT MAX METHOD MODE NAME PATH PROVIDER SIZE SOCK SOCKET STORE TTL TYPE`.split(/\s+/),
)
/** Values of settings, the usual passwords of development set-ups, and user names that stand beside a token. */
const PLAIN_WORDS: ReadonlySet<string> = new Set(
  `disabled enabled required optional undefined external internal automatic interactive anonymous password
  keychain osxkeychain keyring gnome-keyring development production localhost changeme plaintext username
  postgres postgresql wordpress mysqlroot rootroot testtest passw0rd password1 password123 admin123 adminadmin
  minioadmin 12345678 123456789 secretsecret supersecret
  x-access-token x-oauth-basic`.split(/\s+/),
)
