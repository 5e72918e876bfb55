import { realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { readOwnPrompt, readUsualPrompt } from '../../agents/prompts.ts'
import { systemErrorCode, UserError } from '../../base/errors.ts'
import { schemaLine } from '../../base/schemas.ts'
import { nearestName } from '../../base/text.ts'
import type { Agent, AgentRoster } from '../../core/shapes/agent.ts'
import type { PromptTerms } from '../../core/shapes/queue.ts'
import type { TemplateKind, TemplateKinds } from '../../core/template.ts'
import { parseToml, tomlNodeAt, tomlTree, tomlValue } from '../../platform/toml.ts'
import { withTomlValue } from '../../platform/toml-edit.ts'
import { redactorOf } from '../../secrets/redactor.ts'
import { secretVariables } from '../../secrets/variables.ts'
import { readTextFile, writeFileInside } from '../../workspace/files/inside-directory.ts'
import type { RunOptions } from '../library.ts'
import { refuseSecretGates, settingsOf } from '../open-run.ts'
import { optionsOf, refuseSecretOptions } from '../session-terms.ts'
import { withVerified } from '../settings/gates.ts'
import type { World } from '../world.ts'

/** Returns a sentence that this version lacks the session's template. */
export function unknownTemplate(name: string): string {
  return `This version of codemachine has no template ${JSON.stringify(name.slice(0, 60))}; a newer one may have it.`
}

/** Returns a sentence why no prompt can begin this template; null: one can. `name` undefined: the default. */
export function problemOfTemplate(
  templates: TemplateKinds,
  name: string | undefined,
  by: 'prompt' | 'queue' = 'prompt',
): string | null {
  if (name === undefined) return null
  const kind = templates.get(name)
  if (kind === undefined) return unknownTemplate(name)
  return wayToBegin(kind, by)
}

/** How a session begins: a typed prompt, a queued one, its template's own command, or `start`, from the specification. */
type Beginning = 'prompt' | 'queue' | 'command' | 'start'

/** Returns a sentence on how else a session of this template begins; null: this way works. */
function wayToBegin(
  { name, command, isCall, hasOwnCommand, promptNames, needsRequest }: TemplateKind,
  by: Beginning = 'prompt',
): string | null {
  const shown = JSON.stringify(name)
  if (isCall) return `The template ${shown} is not started, but called: ${command}`
  const isNamed = by === 'queue' && promptNames !== undefined
  if (hasOwnCommand && by !== 'command' && !isNamed)
    return `A prompt cannot start the template ${shown}; use: ${command}`
  if (!needsRequest || by !== 'start') return null
  return `A specification cannot start the template ${shown}; write a goal: ${command}`
}

/** Returns the templates that a specification can start: others have their own command. */
export function startableTemplates(templates: TemplateKinds): TemplateKind[] {
  return [...templates.values()].filter(kind => wayToBegin(kind, 'start') === null)
}

/** Returns the template of that name. Throws a `UserError` if there is none, or it does not begin this way. */
export function templateNamed(templates: TemplateKinds, name: string, by: Beginning = 'prompt'): TemplateKind {
  const found = templates.get(name)
  const other = found === undefined ? null : wayToBegin(found, by)
  if (other !== null) throw new UserError('CM1010', other)
  if (found !== undefined) return found
  const names = [...templates.values()].filter(kind => wayToBegin(kind, by) === null).map(each => each.name)
  const near = nearestName(name, names)
  const shown = JSON.stringify(name.slice(0, 60))
  throw new UserError(
    'CM1010',
    `There is no template ${shown}; ${near === null ? `use ${names.join(' or ')}.` : `did you mean "${near}"?`}`,
  )
}

/**
 * Throws a `UserError` if no session can begin with these terms: an unknown template, an invalid gate, or a secret of the
 * environment in a gate or an option, which is never stored.
 */
export function checkTerms(
  terms: PromptTerms,
  { templates, modes, env }: Pick<World, 'templates' | 'modes' | 'env'>,
  by: 'prompt' | 'queue' = 'prompt',
): void {
  const { template, gates = [] } = terms
  const kind = templateNamed(templates, template ?? modes.usual, by)
  const redactor = redactorOf(secretVariables(env))
  refuseSecretOptions(kind, optionsOf(kind, terms.options), redactor)
  const checked = withVerified([], gates, { sandbox: 'read-only', network: false })
  refuseSecretGates({ gates: checked }, { redactor, env })
}

/**
 * Throws a `UserError` if an agent that this template needs has no prompt. The team builder fixes unusable ones of the
 * project itself.
 */
export async function refuseUnusablePrompts(
  directory: string,
  template: TemplateKind,
  agents: AgentRoster,
): Promise<void> {
  if (!Object.values(template.parts).some(({ delegates }) => delegates)) return
  const own = await Promise.all(agents.sub.map(({ name }) => readOwnPrompt(directory, name)))
  const shipped = [...agents.main, ...agents.sub.filter((_, index) => own[index] === null)]
  for (const agent of shipped) await refuseUnusable(agent)
}

async function refuseUnusable(agent: Agent): Promise<void> {
  if (!agent.enabled) return
  const prompt = await readUsualPrompt(agent)
  if ('problem' in prompt) throw new UserError('CM0206', prompt.problem)
}

const FILE = 'codemachine.toml'
const MOST_BYTES = 1024 * 1024
/** A person commits it. */
const MODE = 0o644

/**
 * Writes this template into the project's `codemachine.toml` as the choice of `start`, and changes nothing else there.
 * Returns a sentence for the person. Throws a `UserError` if the file or another setting is invalid.
 */
export async function chooseTemplate(
  world: Pick<World, 'env' | 'configHome' | 'templates'>,
  directory: string,
  name: string,
  options: RunOptions = {},
): Promise<string> {
  const root = await realpath(directory)
  const before = await settingsOf(world, directory, options).catch(async error => {
    if (!(await isWrongMode(root, world.templates))) throw error
    return null
  })
  const source = before?.sources.mode
  if (before?.settings.mode === name && source?.layer !== 'environment') {
    return `${name} is chosen already (${source?.place}).`
  }
  await writeMode(root, name)
  const now = await settingsOf(world, directory, options)
  if (now.settings.mode === name) return `${FILE} says so now: start starts a session of the template ${name}.`
  return `${FILE} says ${name} now, but ${now.sources.mode.place} overrides it with ${now.settings.mode}.`
}

async function writeMode(root: string, name: string): Promise<void> {
  const path = join(root, FILE)
  const read = await readTextFile(path, MOST_BYTES)
  if (read.kind === 'broken') throw new UserError('CM0201', `${FILE}: ${read.problem}`)
  const [line, text] = read.kind === 'gone' ? [schemaLine(FILE), ''] : ['', read.text]
  try {
    await writeFileInside(
      root,
      FILE,
      line + withTomlValue(text, ['mode'], name, { name: FILE }),
      read.kind === 'text' ? read.state.mode : MODE,
    )
  } catch (error) {
    const code = systemErrorCode(error)
    if (code === null) throw error
    throw new UserError(
      'CM0211',
      `${path} cannot be written to (${code}); give yourself the right to write in its folder.`,
      {
        cause: error,
      },
    )
  }
}

/** Returns whether the file's `mode` is invalid: the choice fixes it. */
async function isWrongMode(root: string, templates: TemplateKinds): Promise<boolean> {
  const read = await readTextFile(join(root, FILE), MOST_BYTES)
  if (read.kind !== 'text') return false
  const mode = tomlNodeAt(tomlTree(parseToml(read.text.replace(/^\uFEFF/, ''), { name: FILE })), ['mode'])
  return mode !== null && !templates.has(String(tomlValue(mode)))
}
