import { readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { Clock } from '../base/clock.ts'
import { messageOf, systemErrorCode } from '../base/errors.ts'
import { type Redactor, redactorOf, type Secret } from '../base/redactor.ts'
import { isShortSecret, problemOfKey, problemOfValue } from '../core/contracts/secrets.ts'
import { readBoundedNow, stampOf } from '../platform/files.ts'

/** A redactor that learns secrets while it is used. */
export interface LearningRedactor extends Redactor {
  /** What was stored a moment ago is known when this returns. */
  refresh(): void
}

/**
 * A redactor of the secrets of an environment, of codex's home (absolute path) and of a project: those that are kept in its
 * folder of the records, in every form. `keys`: names of variables that hold one, whatever they are called. Reads codex's files
 * and the folder again when they have changed, and goes on knowing what was in them before.
 */
export function openRedactor(options: {
  env: Readonly<NodeJS.ProcessEnv>
  /** Null: there is none. */
  codexHome: string | null
  /** `Records.secrets`; left out: of no project. */
  project?: string
  clock: Clock
  keys?: readonly string[]
}): LearningRedactor {
  const { env, codexHome, project, clock, keys = [] } = options
  const variables = secretVariables(env, keys)
  const places = [
    ...(codexHome === null ? [] : FILES.map(name => ({ path: join(codexHome, name), read: secretsInFile }))),
    ...(project === undefined ? [] : [{ path: project, read: secretsOfProject }]),
  ].map(place => ({ ...place, stamp: '' as string | null }))
  const tokens = new Map<string, Secret>()
  const ofProject = new Map<string, Secret>()
  let lookedAt = Number.NEGATIVE_INFINITY
  let redactor = redactorOf(variables)
  const look = () => {
    lookedAt = clock.monotonic()
    let isNew = false
    for (const place of places) {
      const stamp = stampOf(place.path)
      if (stamp === place.stamp) continue
      place.stamp = stamp
      for (const secret of place.read(place.path)) {
        const known = secret.isEncoded ? ofProject : tokens
        isNew ||= !known.has(secret.value)
        known.set(secret.value, secret)
      }
    }
    // First: a secret that the environment has too is looked for in every form.
    if (isNew) redactor = redactorOf([...newest(ofProject), ...variables, ...newest(tokens)])
  }
  const current = (): Redactor => {
    if (clock.monotonic() - lookedAt >= LOOK_MS) look()
    return redactor
  }
  return {
    text: text => current().text(text),
    event: event => current().event(event),
    line: line => current().line(line),
    unfinished: text => current().unfinished(text),
    refresh() {
      for (const place of places) if (place.read === secretsOfProject) place.stamp = ''
      look()
    },
  }
}

function newest(secrets: ReadonlyMap<string, Secret>): Secret[] {
  return [...secrets.values()].slice(-MOST_KEPT)
}

/** Codex's login, and that of its MCP servers. */
const FILES = ['auth.json', '.credentials.json']
/** How often they are looked at, at most, ms: codex renews its tokens while it runs, and a person stores secrets. */
const LOOK_MS = 200
/** Tokens that are remembered, and secrets of a project; the oldest are forgotten first. More than codex renews in a night. */
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

const MOST_BYTES = 1024 * 1024

/**
 * The tokens and keys in a JSON file of at most 1 MiB, whatever its shape: texts under a key that looks secret, and long
 * texts without a space. Empty if the file is missing, too long or no JSON. Synchronous: no text can be let through while
 * the file is being read.
 */
function secretsInFile(path: string): Secret[] {
  const text = readBoundedNow(path, MOST_BYTES)?.toString('utf8') ?? null
  if (text === null) return []
  try {
    return [...secretsIn(JSON.parse(text), null, false)]
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof RangeError) return []
    throw new Error(`${path}: ${messageOf(error)}`, { cause: error })
  }
}

/**
 * The secrets that are kept in a folder, a file `KEY.json` each; its time changes whenever one of them is stored. Those that are too
 * short to be looked for are left out, and so is what cannot be read: nothing is given to a command of which that is true.
 */
function secretsOfProject(folder: string): Secret[] {
  return namesIn(folder).flatMap(name => {
    const text = readBoundedNow(join(folder, name), MOST_BYTES)?.toString('utf8') ?? null
    const value = text === null ? null : valueIn(text)
    const isLookedFor = value !== null && problemOfValue(value) === null && !isShortSecret(value)
    return isLookedFor ? [{ name: basename(name, '.json'), value, isEncoded: true as const }] : []
  })
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
      .filter(name => name.endsWith('.json') && problemOfKey(basename(name, '.json')) === null)
      .slice(0, MOST_KEPT)
  } catch (error) {
    if (systemErrorCode(error) === null) throw error
    return []
  }
}

function valueIn(text: string): string | null {
  try {
    const { value } = JSON.parse(text)
    return typeof value === 'string' ? value : null
  } catch {
    return null
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
