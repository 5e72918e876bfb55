import type { Secret } from '../base/redactor.ts'
import { isUncommon, nameLooksSecret, valueLooksSecret } from './looks-secret.ts'

/**
 * The secrets in an environment: of variables whose names look secret, and what is secret in the addresses in any
 * variable.
 */
export function secretVariables(env: Readonly<NodeJS.ProcessEnv>): Secret[] {
  const secrets: Secret[] = []
  for (const [name, value = ''] of Object.entries(env)) {
    if (nameLooksSecret(name) && valueLooksSecret(name, value)) secrets.push({ name, value })
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

/** No name that a person or a service goes by: `git`, `deploying-machine`. */
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
