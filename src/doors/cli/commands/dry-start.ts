import { UserError } from '../../../base/errors.ts'
import { settingsOf } from '../../../project/open-run.ts'
import { type DryRun, describeSpecification, dryRunHere, goalOf } from '../../../project/start/dry-run.ts'
import { chooseTemplate, templateNamed } from '../../../project/start/templates.ts'
import { recordsAround } from '../../../session/records/records.ts'
import { safeText } from '../../../tell/words/safe-text.ts'
import { readSpecification } from '../../../workspace/memory/specification.ts'
import type { CliContext } from '../../screen/cli-context.ts'
import { directoryOf, type LookFlags, printDone } from '../flags.ts'
import { runOptionsOf } from '../run-options.ts'
import type { StartFlags } from './run.ts'

/** `codemachine start --dry-run`: prints what codex would be given. Writes nothing, and runs nothing but `codex --version`. */
export async function dryStart(context: CliContext, { template: typed, ...flags }: StartFlags): Promise<number> {
  if (flags.worktree !== undefined) {
    throw new UserError('CM0102', '--dry-run makes no worktree; leave --worktree out, because the output is the same.')
  }
  const named = typed === undefined ? null : templateNamed(context.templates, typed, 'start')
  const wanted = directoryOf(context, flags)
  const [records] = await recordsAround({ ...context, directory: wanted })
  if (records === undefined) throw new UserError('CM0106', `${wanted} is not a directory; name an existing one.`)
  const { directory } = records
  const { settings, sources, agentTables } = await settingsOf(context, directory, runOptionsOf(flags))
  const kind = named ?? templateNamed(context.templates, settings.mode, 'start')
  const template = kind.name
  const specification = await readSpecification(directory)
  const { codex, ...run } = await dryRunHere(context, records, {
    template: kind,
    settings,
    sources,
    agentTables,
  })
  const goal = goalOf(specification)
  if (flags.json) {
    context.stdout.write(`${JSON.stringify({ template, directory, codex, goal, ...run })}\n`)
    return 0
  }
  const head = [
    'A dry run: nothing is started, written or spent.',
    `It would be a session of the template ${template} in ${directory}, with codex ${codex}.`,
    'If codex or the account does not offer a model, codex uses its own.',
    ...describeSpecification(specification),
  ]
  context.stdout.write(`${[head.join('\n'), section('The goal', goal), ...sections(run)].join('\n\n')}\n`)
  return 0
}

const WHOSE = {
  person: 'your prompt',
  project: "the project's own prompt",
  shipped: 'the prompt that codemachine ships',
}

function sections({ rounds, agents }: DryRun): string[] {
  return [
    ...rounds.map(({ part, developerInstructions, ...with_ }) =>
      section(
        `Rounds${part === null ? '' : ` of ${part}`}: developer instructions of ${described(with_)}`,
        developerInstructions,
      ),
    ),
    ...agents.map(({ from, prompt, ...with_ }) => section(`${described(with_)}: ${WHOSE[from]}`, prompt)),
  ]
}

function section(title: string, text: string): string {
  return `─── ${title}\n${safeText(text)}`
}

function described({ agent, model, effort }: { agent: string; model: string | null; effort: string | null }): string {
  return `${agent} (${model ?? "codex's own model"}, ${effort === null ? 'its own effort' : `effort ${effort}`})`
}

/** `codemachine templates`: what `start` can start, and which of it is chosen. */
export async function listTemplates(context: CliContext, { json, ...place }: LookFlags): Promise<number> {
  const { settings, sources } = await settingsOf(context, directoryOf(context, place), {})
  const templates = [...context.templates.values()].map(({ name, description, command }) => ({
    name,
    description,
    command,
    chosen: name === settings.mode,
  }))
  if (json) {
    context.stdout.write(`${JSON.stringify(templates)}\n`)
    return 0
  }
  const width = Math.max(...templates.map(({ name }) => name.length)) + 1
  for (const { name, description, command, chosen } of templates) {
    const where = chosen ? `  (chosen: ${sources.mode.place})` : ''
    context.stdout.write(`${chosen ? '*' : ' '} ${name.padEnd(width)} ${description}${where}\n`)
    context.stdout.write(`  ${' '.repeat(width)} ${command}\n`)
  }
  context.stdout.write('To choose another one: codemachine templates select <name>\n')
  return 0
}

/** `codemachine templates select`: has `start` start sessions of that template in this project. */
export async function selectTemplate(context: CliContext, typed: string, flags: LookFlags): Promise<number> {
  const { name } = templateNamed(context.templates, typed, 'start')
  return printDone(context, flags, await chooseTemplate(context, directoryOf(context, flags), name), { name })
}
