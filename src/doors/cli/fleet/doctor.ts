import { examineFleet } from '../../../fleet/doctor.ts'
import type { CliContext } from '../../screen/cli-context.ts'
import { sayWaiting, showFindings } from '../commands/doctor.ts'
import type { FleetFlags } from '../flags.ts'

/** `codemachine fleet doctor`: looks whether all that a fleet needs is there, and changes nothing. 4 if something has to be mended. */
export async function fleetDoctor(
  context: CliContext,
  { queue, offline = false, json = false }: FleetFlags & { offline?: boolean; json?: boolean },
): Promise<number> {
  const found = examineFleet(context, { queue, offline, onLate: sayWaiting(context) })
  return await showFindings(context, found, { json, what: { who: 'The fleet', where: '' } })
}
