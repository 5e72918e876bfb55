import type { Redactor } from '../../base/redactor.ts'
import type { Records } from '../../records/records.ts'
import { openRedactor } from '../../secrets/secrets.ts'
import type { World } from '../world.ts'

/** Takes the secrets of the environment, and those of a project, out of what is shown of it. */
export function redactorOfProject(
  { env, clock }: Pick<World, 'env' | 'clock'>,
  { secrets }: Pick<Records, 'secrets'>,
): Redactor {
  return openRedactor({ env, codexHome: null, project: secrets, clock })
}
