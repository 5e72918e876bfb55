/** Whether a variable or a key of this name is likely to hold a secret: `MY_API_TOKEN2`, `dbPassword`, not `KEYBOARD`. */
export function nameLooksSecret(name: string): boolean {
  const words = wordsOf(name)
  // `TOKEN_FILE`, `KEY_SIZE`: about a secret, and none.
  if (ABOUT_SECRETS.has(words.at(-1) ?? '')) return false
  return words.some(word => SECRET_WORDS.has(word) || SECRET_ENDINGS.test(word))
}

/** Whether a text that has this name can be a secret: long enough, no common word, and no file's path. */
export function valueLooksSecret(name: string, value: string): boolean {
  return isUncommon(value) && (!looksLikePath(value.trim()) || NEVER_PATH.test(wordsOf(name).join('')))
}

/** Whether a text is long enough to be a secret, and to be told from common words. */
export function isUncommon(value: string): boolean {
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
/** What values mean that are none, what development is often set up with, and the users that go with a token. */
const PLAIN_WORDS: ReadonlySet<string> = new Set(
  `disabled enabled required optional undefined external internal automatic interactive anonymous password
  keychain osxkeychain keyring gnome-keyring development production localhost changeme plaintext username
  postgres postgresql wordpress mysqlroot rootroot testtest passw0rd password1 password123 admin123 adminadmin
  minioadmin 12345678 123456789 secretsecret supersecret
  x-access-token x-oauth-basic`.split(/\s+/),
)
