import type { Redactor } from '../../secrets/redactor.ts'
import { openRedactor } from '../../secrets/secrets.ts'
import type { Records } from '../../session/records/records.ts'
import type { World } from '../world.ts'

/** Returns a redactor for the secrets of the environment and the project. */
export function redactorOfProject(
  { env, clock }: Pick<World, 'env' | 'clock'>,
  { secrets }: Pick<Records, 'secrets'>,
): Redactor {
  return openRedactor({ env, codexHome: null, project: secrets, clock })
}
