import { basename, dirname } from 'node:path'
import { codeBlock } from '../../../base/markdown.ts'
import { problemOfPrompt } from '../../../base/text.ts'
import { PLAN_CHOICES, PLAN_DECISION } from '../../../core/state/plan.ts'
import type { SessionState } from '../../../core/state/state.ts'
import type { ShownPlan } from '../../../core/view.ts'
import { newestChange } from '../../../modes/change/start/begin.ts'
import { CHANGE } from '../../../modes/change/start/options.ts'
import { PROJECTS } from '../../../modes/team/start/places.ts'
import { shellWord } from '../../../platform/shell-word.ts'
import { newestSessions, readableState } from '../../../project/find.ts'
import { wordsForVersion } from '../../../tell/words/plan.ts'
import { oneLine } from '../../../tell/words/safe-text.ts'
import { plansOf } from '../../../tell/words/work.ts'
import { markdownLines } from '../blocks/markdown.ts'
import { drawnSource } from '../pager/source.ts'
import { answerDecision, askDecision } from '../screen/dialogs.ts'
import type { SlashPlace, TypedChange } from './person-screen.ts'

/** `/change <request>`: begins a change; while a session is shown it waits in the queue. */
export async function changeSlash(place: SlashPlace, rest: string): Promise<void> {
  if (isRequest(place, 'change', rest)) await beginOrQueue(place, '/change', { request: rest.trim(), follows: null })
}

/** `/follow <request>`: a change that goes on from the newest one here. */
export async function followSlash(place: SlashPlace, rest: string): Promise<void> {
  if (!isRequest(place, 'follow', rest)) return
  const follows = await newestChange(place.records)
  if (follows === null) {
    place.person.screen.model.giveBack(rest.trim())
    return place.person.screen.notice('No change here yet to follow; /change starts one', 'warning')
  }
  await beginOrQueue(place, '/follow', { request: rest.trim(), follows })
}

/**
 * `/team <goal>`: a team makes a project of its own below this directory. It waits in no queue: its session is one of that
 * project, so while one is shown here it is begun in another terminal, and runs beside it.
 */
export function teamSlash(place: SlashPlace, rest: string): void {
  const example = 'Add what to build: /team a service that says hello, with a start script'
  if (!isRequest(place, 'team', rest, example)) return
  const { person, start, records } = place
  const goal = rest.trim()
  person.remember(`/team ${goal}`)
  if (start !== null && !start.isRunning()) {
    start.wish({ kind: 'team', goal })
    return
  }
  const command = `codemachine team -C ${shellWord(workspaceOf(records.directory))} ${shellWord(goal)}`
  person.screen.say('A team has its own project. Start it in another terminal:')
  person.screen.say(command, 'strong')
}

/** The directory in which the project lies that a team works in; else the directory itself. */
function workspaceOf(directory: string): string {
  const folder = dirname(directory)
  return basename(folder) === PROJECTS ? dirname(folder) : directory
}

/** Whether a request stands behind the command; if not, the command stands in the composer, to be gone on with. */
function isRequest(
  { person }: SlashPlace,
  name: string,
  rest: string,
  example = `Add what to change: /${name} add rate limiting to the API`,
): boolean {
  const { screen } = person
  if (rest.trim() === '') {
    if (screen.model.composer.text.trim() === '') screen.model.composer.setText(`/${name} `)
    screen.notice(example, 'warning')
    return false
  }
  const problem = problemOfPrompt(rest)
  if (problem === null) return true
  screen.notice(problem, 'warning')
  return false
}

async function beginOrQueue({ person, start }: SlashPlace, name: string, change: TypedChange): Promise<void> {
  const { request, follows } = change
  person.remember(`${name} ${request}`)
  if (start !== null && !start.isRunning()) return start.wish({ kind: 'change', change })
  const said = await person.queue.add(request, { template: CHANGE, ...(follows === null ? {} : { follows }) })
  person.screen.notice(follows === null ? said : `After ${follows}: ${said}`, 'good')
}

/** How many sessions are looked through for one that has a plan. */
const MOST_LOOKED_AT = 50

async function newestThat(
  { records, person }: SlashPlace,
  is: (state: SessionState) => boolean,
): Promise<SessionState | null> {
  const { showsSession, pane } = person.screen.model
  // The session that is shown comes first, and is known.
  if (showsSession && pane.state !== null && is(pane.state)) return pane.state
  for (const id of (await newestSessions(records, MOST_LOOKED_AT)).reverse()) {
    const state = await readableState(records, id, 'ends')
    if (state !== null && is(state)) return state
  }
  return null
}

const ANSWERS: Readonly<Record<string, string>> = {
  accept: PLAN_CHOICES.accept,
  reject: PLAN_CHOICES.change,
  edit: 'edit',
}

/** `/plan [show]`: the plan, in the pager; `/plan accept ["remark"]`, `/plan reject "what to change"`, `/plan edit`: answers the one that waits. */
export async function planSlash(place: SlashPlace, rest: string): Promise<void> {
  const { person, context } = place
  const { screen } = person
  const [, word = '', said = ''] = /^(\S*)\s*(.*)$/s.exec(rest.trim()) ?? []
  const choice = ANSWERS[word]
  if (choice === undefined && word !== '' && word !== 'show') {
    return screen.notice(`/plan accepts show, accept, reject and edit, not "${oneLine(word, 40)}"`, 'warning')
  }
  if (choice === undefined) return await showPlan(place)
  if (openPlan(place) === null) return screen.notice('No plan is waiting for you; /plan shows the last one', 'warning')
  await answerDecision({ model: screen.model, host: person, clock: context.clock }, `${choice} ${said}`)
}

/** The decision on a plan that the session on the screen asks for; null if it asks for none. */
function openPlan({ person }: SlashPlace) {
  const { isRunning, pane } = person.screen.model
  const decision = isRunning ? pane.state?.decision : null
  return decision?.id === PLAN_DECISION ? decision : null
}

async function showPlan(place: SlashPlace): Promise<void> {
  const { person, context } = place
  const { screen } = person
  const state = await newestThat(place, each => plansOf(each).length > 0)
  const plans = state === null ? [] : plansOf(state)
  const plan = plans.at(-1)
  if (state === null || plan === undefined) return screen.notice('No plan here yet', 'warning')
  const waits = openPlan(place) !== null && state.id === screen.model.pane.state?.id
  const text = planInMarkdown(plan, waits)
  const draw = (columns: number) => markdownLines(text, { columns, theme: screen.model.theme, first: true })
  await screen.page(`The plan of ${state.id}`, drawnSource(draw, screen.output.columns), 'start')
  // It was closed for the command.
  if (waits) await askDecision({ model: screen.model, host: person, clock: context.clock })
}

function planInMarkdown(plan: ShownPlan, waits: boolean): string {
  const { version, feedback, text, diff } = plan
  return [
    `# Plan, version ${version}`,
    wordsForVersion(plan, waits),
    ...(feedback === null ? [] : [feedback.replace(/^/gm, '> ')]),
    text.trim(),
    ...(diff === null || diff.trim() === ''
      ? []
      : [`## Differences from version ${version - 1}`, codeBlock(diff, 'diff')]),
  ].join('\n\n')
}
