import { askOfferedModels, type OfferedModels } from '../codex/offered-models.ts'
import { shieldEnvironment } from '../codex/shielded-environment.ts'
import type { Records } from '../session/records.ts'
import type { ChosenCodex } from './codex-options.ts'
import type { CliContext } from './context.ts'

/** Asks the codex of a run which models it offers, in at most 10 s. Never rejects for what codex does. */
export async function modelsAtHand(
  { clock, platform, signal }: Pick<CliContext, 'clock' | 'platform' | 'signal'>,
  { folder, directory }: Pick<Records, 'folder' | 'directory'>,
  { binary, home }: Pick<ChosenCodex, 'binary' | 'home'>,
  overrides: readonly string[],
): Promise<OfferedModels> {
  const choice = { mode: 'workspace-write', network: false, writable: [] } as const
  return await askOfferedModels(
    {
      path: binary.path,
      args: overrides.flatMap(pair => ['-c', pair]),
      env: shieldEnvironment(home.env, directory, choice).env,
      directory: folder,
      clock,
      platform,
    },
    signal,
  )
}
