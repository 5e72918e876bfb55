import type { Secret } from '../core/shapes/secrets.ts'

/**
 * Returns secrets in an environment: variables whose names look secret or are in `keys`, secrets in URLs of any
 * variable, and the values in lists of HTTP headers.
 */
export function secretVariables(env: Readonly<NodeJS.ProcessEnv>, keys: readonly string[] = []): Secret[] {
  const secrets: Secret[] = []
  for (const [name, value = ''] of Object.entries(env)) {
    const isSecret = keys.includes(name) ? isUncommon(value) : nameLooksSecret(name) && valueLooksSecret(name, value)
    if (isSecret) secrets.push({ name, value })
    const within = [...secretsInAddresses(value), ...(wordsOf(name).includes('HEADERS') ? secretsInHeaders(value) : [])]
    for (const secret of within) secrets.push({ name, value: secret })
  }
  return secrets
}

/** Returns passwords, and tokens in place of a user, both as written and decoded. */
function secretsInAddresses(text: string): string[] {
  return [...text.matchAll(ADDRESS)].flatMap(([, user = '', password = '']) => {
    const secret = isUncommon(password) ? password : looksLikeToken(user) ? user : null
    return secret === null ? [] : inBothForms(secret)
  })
}

/** Returns the values of `authorization=Bearer%20…,x-key=…` without their schemes, both as written and decoded. */
function secretsInHeaders(text: string): string[] {
  return text.split(/[,\n]/).flatMap(header => {
    const [, value = ''] = /^[^=:]*[=:](.*)$/.exec(header.trim()) ?? []
    return inBothForms(value.trim().replace(/^[a-z]+(?:\s|%20)+(?=.)/i, ''))
  })
}

function inBothForms(secret: string): string[] {
  return [...new Set([secret, decoded(secret)])].filter(isUncommon)
}

// Without the scheme: a search for its start is slow in a long text without URLs.
const ADDRESS = /:\/\/([^\s:/@?#"]*)(?::([^\s/@]*))?@/g

/** Returns false for names of persons and services: `git`, `deploying-machine`. */
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

/** Returns true if this name probably means a secret: `MY_API_TOKEN2`, `dbPassword`, not `KEYBOARD`. */
export function nameLooksSecret(name: string): boolean {
  const words = wordsOf(name)
  // `TOKEN_FILE`, `KEY_SIZE`: about a secret, but not one.
  if (ABOUT_SECRETS.has(words.at(-1) ?? '')) return false
  return words.some(word => SECRET_WORDS.has(word) || SECRET_ENDINGS.test(word))
}

/** Returns true if the value of this name can be a secret: long enough, not a common word, not a path. */
export function valueLooksSecret(name: string, value: string): boolean {
  return isUncommon(value) && (!looksLikePath(value.trim()) || NEVER_PATH.test(wordsOf(name).join('')))
}

/** Returns true for at least 8 characters that are not a common word. */
function isUncommon(value: string): boolean {
  const text = value.trim()
  return text.length >= 8 && !PLAIN_WORDS.has(text.toLowerCase())
}

/** Returns the words in capitals, without numbers at their ends: `apiKey2` is `API` and `KEY`. */
function wordsOf(name: string): string[] {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toUpperCase()
    .split(/[^A-Z0-9]+/)
    .map(word => word.replace(/\d+$/, ''))
    .filter(word => word !== '')
}

function looksLikePath(text: string): boolean {
  // A base64 key may start with a slash and contain more.
  if (/^\/[A-Za-z0-9+/=]{31,}$/.test(text) && (/[+=]/.test(text) || text.lastIndexOf('/') === 0)) return false
  return /^(?:\/|~[\w.-]*\/|\.{1,2}\/|[A-Za-z]:[\\/]|\\\\)[^\n]*$/.test(text)
}

/** Names of base64 keys, which may look like a path. */
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
/** Setting values, usual development passwords, and user names next to a token. */
const PLAIN_WORDS: ReadonlySet<string> = new Set(
  `disabled enabled required optional undefined external internal automatic interactive anonymous password
  keychain osxkeychain keyring gnome-keyring development production localhost changeme plaintext username
  postgres postgresql wordpress mysqlroot rootroot testtest passw0rd password1 password123 admin123 adminadmin
  minioadmin 12345678 123456789 secretsecret supersecret
  x-access-token x-oauth-basic`.split(/\s+/),
)
