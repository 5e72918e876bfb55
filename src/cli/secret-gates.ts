import { UserError } from '../base/errors.ts'
import type { Redactor } from '../base/redactor.ts'
import type { Gate } from '../session/gate.ts'
import { shortened } from '../settings/entries.ts'
import type { Gates } from '../settings/gates.ts'

/**
 * Refuses a gate that holds a secret: gates are journaled, and run as they are journaled, with `[secret NAME]` in the
 * place of it.
 */
export function refuseSecretGates(
  { gates, gatePlaces }: Pick<Gates, 'gates' | 'gatePlaces'>,
  { redactor, env }: { redactor: Redactor; env: NodeJS.ProcessEnv },
): void {
  for (const gate of gates) {
    const kept = redactor.event(gate)
    const name = secretIn(kept)
    if (name === null) continue
    const place = gatePlaces.get(gate.name) ?? '--verify'
    const isInCommand = kept.run !== gate.run
    const mend = isInCommand && env[name] !== undefined ? `write "$${name}" in its place` : 'take it out'
    throw new UserError(
      `${place}: ${isInCommand ? 'this command' : 'this gate'} holds a secret (${name}), which is never kept; ${mend}.`,
    )
  }
}

/** Refuses gates of a session that goes on of which a secret was not kept: they would run without it. */
export function refuseHiddenGates(id: string, gates: readonly Gate[]): void {
  for (const gate of gates) {
    const name = secretIn(gate)
    if (name === null) continue
    throw new UserError(
      `${id} has a gate with a secret in it (${shortened(gate.name)}), which is not kept; write "$${name}" in its place in the file that names it, and add --reread-gates.`,
    )
  }
}

function secretIn(gate: Gate): string | null {
  return JSON.stringify(gate).match(/\[secret ([\w .:-]+)\]/)?.[1] ?? null
}
