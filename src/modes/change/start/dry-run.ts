import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadAgents } from '../../../agents/agent.ts'
import type { SessionEvent } from '../../../core/events/events.ts'
import { FOLLOWS, nextOutput, type Output, withMaterials } from '../../../core/rules/outputs.ts'
import type { AgentRoster } from '../../../core/shapes/agent.ts'
import type { MemorySnapshot } from '../../../core/shapes/memory.ts'
import { fold } from '../../../core/state/fold.ts'
import { emptyState, type SessionState } from '../../../core/state/state.ts'
import { NO_KEPT_TEXTS, type RoundSpec, type Template, type TemplateKind } from '../../../core/template.ts'
import { pathExists } from '../../../platform/files.ts'
import { codexFor, namedCodex, providersOf } from '../../../project/engine-of-project.ts'
import { followedSession } from '../../../project/follow/followed-session.ts'
import type { RunOptions } from '../../../project/library.ts'
import { settingsOf } from '../../../project/open-run.ts'
import { redactorOfProject } from '../../../project/secrets/redactor.ts'
import { optionsOf } from '../../../project/session-terms.ts'
import { templateNamed } from '../../../project/start/templates.ts'
import type { World } from '../../../project/world.ts'
import type { Redactor } from '../../../secrets/redactor.ts'
import type { Records } from '../../../session/records/records.ts'
import { scopeFolder, sessionFolder } from '../../../workspace/memory/memory-paths.ts'
import type { ChangeOptions } from '../work.ts'
import { sessionToFollow, type WantedChange } from './begin.ts'
import { CHANGE, changeTerms } from './options.ts'

/** The beginning of a change: its gathered context, and the first round's input. */
export interface DryChange {
  template: string
  directory: string
  /** Version of the codex that it would use. */
  codex: string
  request: string
  options: ChangeOptions
  /** Id of the session that it would follow; null: none. */
  follows: string | null
  /** Gathered context of the project, Markdown. */
  context: string
  /** First round: its model, developer instructions and input. */
  planner: { model: string | null; effort: string | null; developerInstructions: string; input: string }
}

/** Placeholder for the missing session. */
const SOME_SESSION = '<session>'
/** A template with more steps than this never begins a round. */
const MOST_STEPS = 50
/** Most characters of a turn's input. */
const MOST_INPUT = 1_048_500

/**
 * Returns the beginning of a change here: it reads the project as a session does, and starts, writes and asks nothing.
 * Throws a `UserError` if the change would be refused.
 */
export async function dryChange(
  world: World,
  records: Records,
  { request, said, follows }: WantedChange,
  options: RunOptions,
): Promise<DryChange> {
  const loaded = await settingsOf(world, records.directory, options)
  const { settings, providers } = providersOf(world, loaded)
  const codex = await codexFor(world, records, namedCodex(loaded), { makesCopy: false })
  const terms = changeTerms({ settings, sources: loaded.sources, providers }, said)
  const kind = templateNamed(records.templates, CHANGE)
  const followed =
    follows === undefined ? null : await followedSession(records, await sessionToFollow(records, follows), null)
  const redactor = redactorOfProject(world, records)
  // Agents can write into the temporary folder; without records, no agent has run.
  const above = (await pathExists(records.root)) ? records.root : tmpdir()
  const gitDir = await mkdtemp(join(above, 'dry-run-'))
  try {
    const { goal, ...others } = loadAgents()
    const { model, effort } = settings
    const agents = { ...others, goal: { ...goal, model: model ?? goal.model, modelReasoningEffort: effort } }
    const template = await openTemplate(world, records, kind, { agents, gitDir, redact: text => redactor.text(text) })
    const begun = new DryBeginning({ world, records, kind, template, redactor })
    begun.begin(redactor.text(request), optionsOf(kind, terms), followed)
    const round = await begun.untilRound()
    return {
      template: kind.name,
      directory: records.directory,
      codex: codex.version,
      request: redactor.text(request),
      options: terms,
      follows: followed?.id ?? null,
      context: begun.textOf('context'),
      planner: {
        model: round.thread.model,
        effort: round.thread.effort,
        developerInstructions: round.thread.developerInstructions,
        input: begun.inputOf(round),
      },
    }
  } finally {
    await rm(gitDir, { recursive: true, force: true })
  }
}

async function openTemplate(
  { env }: World,
  { directory }: Records,
  kind: TemplateKind,
  { agents, gitDir, redact }: { agents: AgentRoster; gitDir: string; redact(text: string): string },
): Promise<Template> {
  const memory = sessionFolder({ directory, id: SOME_SESSION, records: SOME_SESSION, memory: kind.memory })
  return await kind.open({
    directory,
    memory,
    scopeFolder: name => scopeFolder(memory, name),
    agents,
    isPlanReady: false,
    tell: () => {},
    kept: NO_KEPT_TEXTS,
    looks: { gitDir, env, redact },
  })
}

interface DryOptions {
  world: World
  records: Records
  kind: TemplateKind
  template: Template
  redactor: Redactor
}

/** Beginning of an imaginary session: its steps up to the first round, none of them stored. */
class DryBeginning {
  readonly #options: DryOptions
  #state: SessionState = emptyState(SOME_SESSION)
  /** By output number. */
  readonly #texts = new Map<number, { name: string; text: string }>()

  constructor(options: DryOptions) {
    this.#options = options
  }

  /** Emits the first event, with the followed session. */
  begin(goal: string, options: unknown, followed: { id: string; text: string } | null): void {
    const { records, kind } = this.#options
    this.#emit({
      type: 'session-created',
      goal,
      template: kind.name,
      directory: records.directory,
      limits: { rounds: null, timeMs: null, tokens: null },
      sandbox: 'workspace-write',
      network: false,
      model: null,
      effort: null,
      overrides: [],
      said: {},
      options,
      ...(followed === null ? {} : { follows: followed.id }),
      queued: null,
      host: '',
      codemachine: '',
    })
    if (followed !== null) this.#emit({ type: 'output-kept', round: 0, output: this.#keep(FOLLOWS, followed.text) })
  }

  /** Takes the steps before the first round, and returns that. Throws if there is none. */
  async untilRound(): Promise<RoundSpec> {
    for (let taken = 0; taken < MOST_STEPS; taken++) {
      const next = this.#options.template.next(this.#state, NOTHING_REMEMBERED)
      const step = this.#state.steps + 1
      switch (next.kind) {
        case 'round':
          return next.round
        case 'enter':
          this.#emit({ type: 'step-started', step, kind: 'enter', name: next.state })
          this.#emit({
            type: 'state-entered',
            step,
            state: next.state,
            from: this.#state.workState,
            why: next.why,
          })
          break
        case 'note':
          this.#emit({ type: 'step-started', step, kind: 'note', name: next.name })
          this.#emit({ type: 'noted', step, name: next.name, text: next.text })
          break
        case 'look':
          this.#emit({ type: 'step-started', step, kind: 'look', name: next.what })
          await this.#look(step, next.what)
          break
        default:
          throw new Error(`A ${next.kind} comes before the first round.`)
      }
    }
    throw new Error('No round comes.')
  }

  /** Returns the text stored by this name; empty: none. */
  textOf(name: string): string {
    return [...this.#texts.values()].find(each => each.name === name)?.text ?? ''
  }

  /** Returns a round's input. */
  inputOf({ input, materials = [], materialsMost }: RoundSpec): string {
    const asked = typeof input === 'string' ? input : input.filter(part => typeof part === 'string').join('')
    const given = materials.map(({ name, output }) => ({ name, text: this.#texts.get(output.n)?.text ?? '' }))
    return withMaterials(asked, given, { most: MOST_INPUT, together: materialsMost })
  }

  async #look(step: number, what: string): Promise<void> {
    const { template, world, redactor } = this.#options
    const found: unknown = await template.looks?.[what]?.(world.signal, this.#state)
    const { text, ...result } = Object(found) as { text?: string }
    const output = text === undefined ? {} : { output: this.#keep(what, redactor.text(text)) }
    this.#emit({ type: 'looked', step, what, result: JSON.parse(redactor.line(JSON.stringify(result))), ...output })
  }

  #keep(name: string, text: string): Output {
    const n = nextOutput([...this.#texts.keys()].map(each => ({ n: each }) as Output))
    this.#texts.set(n, { name, text })
    return { n, name, file: '', bytes: Buffer.byteLength(text), sha256: '', head: text.slice(0, 400) }
  }

  #emit(event: SessionEvent): void {
    const at = new Date(this.#options.world.clock.now()).toISOString()
    const recorded = { v: 1 as const, at, session: SOME_SESSION, ...event }
    this.#state = fold(this.#state, recorded, this.#options.records.templates)
  }
}

const NOTHING_REMEMBERED: MemorySnapshot = {
  main: { status: 'in-progress', finiteIncantatem: false, shortTitle: null, open: [] },
  tasks: [],
  problems: [],
  fingerprint: '',
  texts: { main: '', tasks: '' },
}
