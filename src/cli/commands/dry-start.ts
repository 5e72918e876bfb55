import { join } from 'node:path'
import { UserError } from '../../base/errors.ts'
import { packageRoot } from '../../base/package-root.ts'
import { chooseCodexHome } from '../../codex/codex-home.ts'
import { findCodex } from '../../codex/find-codex.ts'
import { recordsAround } from '../../session/records.ts'
import { safeText } from '../../ui/safe-text.ts'
import { readSpecification } from '../../workspace/specification.ts'
import { shellWord } from '../as-typed.ts'
import type { CliContext } from '../context.ts'
import { directoryOf } from '../flags.ts'
import { settingsOf } from '../open-run.ts'
import { type DryRun, dryRun } from '../start/dry-run.ts'
import { templateNamed } from '../start/templates.ts'
import { describeSpecification, goalOf } from '../start/what-to-build.ts'
import type { StartFlags } from './start.ts'

/** `codemachine start --dry-run`: prints what codex would be given. Writes nothing, and runs nothing but `codex --version`. */
export async function dryStart(context: CliContext, { template: typed, ...flags }: StartFlags): Promise<number> {
  if (flags.worktree !== undefined) {
    throw new UserError('--dry-run makes no worktree; leave --worktree out, and it prints the same.')
  }
  const named = typed === undefined ? null : templateNamed(typed)
  const wanted = directoryOf(context, flags)
  const [records] = await recordsAround({ ...context, directory: wanted })
  if (records === undefined) throw new UserError(`${wanted} is not a directory; name one that is there.`)
  const { directory } = records
  const { settings, sources } = await settingsOf(context, directory, flags)
  const template = named ?? settings.mode
  const specification = await readSpecification(directory)
  const flag = sources.codexBin.layer === 'environment' ? null : settings.codexBin
  const codex = await findCodex({ ...context, flag, directory: context.cwd, packageRoot })
  const { owner } = await chooseCodexHome({ ...context, setting: settings.codexHome, codemachineHome: records.root })
  const run = await dryRun({
    template,
    directory,
    agentRecords: join(records.folder, 'agents'),
    codex,
    hasProfiles: owner === 'codemachine',
    settings,
    overrides: flags.config ?? [],
  })
  const goal = goalOf(specification)
  if (flags.json) {
    context.stdout.write(`${JSON.stringify({ template, directory, codex: codex.version, goal, ...run })}\n`)
    return 0
  }
  const head = [
    'A dry run: nothing is started, written or spent.',
    `It would be a session of the template ${template} in ${directory}, with codex ${codex.version}.`,
    'A model that this codex or the account does not offer gives way to its own.',
    "What codex's home has of the agents' profiles is not looked at; the real start says what it finds there.",
    ...describeSpecification(specification),
  ]
  context.stdout.write(`${[head.join('\n'), section('The goal', goal), ...sections(run)].join('\n\n')}\n`)
  return 0
}

function sections({ rounds, agents }: DryRun): string[] {
  return [
    ...rounds.map(({ part, developerInstructions, ...with_ }) =>
      section(
        `Rounds${part === null ? '' : ` of ${part}`}: developer instructions of ${described(with_)}`,
        developerInstructions,
      ),
    ),
    ...agents.map(({ from, command, ...with_ }) =>
      section(
        `${described(with_)}: ${from === 'project' ? "the project's own prompt" : 'the prompt that codemachine ships'}`,
        command.map(shellWord).join(' '),
      ),
    ),
  ]
}

function section(title: string, text: string): string {
  return `─── ${title}\n${safeText(text)}`
}

function described({ agent, model, effort }: { agent: string; model: string | null; effort: string | null }): string {
  return `${agent} (${model ?? "codex's own model"}, ${effort === null ? 'its own effort' : `effort ${effort}`})`
}
