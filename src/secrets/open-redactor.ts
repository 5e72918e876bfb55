import { join } from 'node:path'
import type { Clock } from '../base/clock.ts'
import { type Redactor, redactorOf, type Secret } from '../base/redactor.ts'
import { secretsInFile, stampOf } from './file-secrets.ts'
import { secretVariables } from './secret-variables.ts'

/** Codex's login, and that of its MCP servers. */
const FILES = ['auth.json', '.credentials.json']
/** How often the files are looked at, at most, ms: codex renews its tokens while it runs. */
const LOOK_MS = 200
/** More than a night of renewed tokens; then the oldest are forgotten. */
const MOST_KEPT = 200

/**
 * A redactor of the secrets of an environment and of codex's home (absolute path). Reads codex's files again when they
 * have changed, and goes on knowing the tokens that were in them before.
 */
export function openRedactor(options: { env: Readonly<NodeJS.ProcessEnv>; codexHome: string; clock: Clock }): Redactor {
  const { env, codexHome, clock } = options
  const variables = secretVariables(env)
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
