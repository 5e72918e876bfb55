import type { Records } from '../../session/records.ts'
import { readRunner } from '../../session/run-lock.ts'
import type { PickerOption } from '../../ui/composer/picker.ts'
import type { Question } from '../../ui/screen/question.ts'
import type { StartFacts } from '../../ui/start/start-facts.ts'
import { latestSession } from '../find-session.ts'
import type { PersonScreen } from './person-screen.ts'
import type { Wish } from './wish.ts'

const GOAL_CHARS = 60

/** The start screen, and what it is about. */
interface StartPlace {
  records: Records
  person: PersonScreen
  platform: NodeJS.Platform
}

/** Asks what the person may want first, unless they are at something; null if it is something else, or nothing. */
export async function askHowToBegin(place: StartPlace, over: AbortSignal): Promise<Wish | null> {
  const { records, person } = place
  const { screen } = person
  const isAtSomething = () => over.aborted || screen.model.dialog !== null || screen.model.composer.text !== ''
  const { facts } = screen.model
  if (facts === null || isAtSomething()) return null
  const atWork = await sessionAtWork(place)
  // Meanwhile they may have begun to type: an Enter that is meant for that must not choose here.
  if (isAtSomething()) return null
  const offers = offersAtStart(facts, atWork)
  if (offers.length === 0) return null
  const question: Question = {
    title: 'How do you want to begin?',
    options: [...offers, { id: 'new', label: 'With something else', hint: 'or just type' }],
    yieldsToTyping: true,
  }
  over.addEventListener('abort', () => {
    if (screen.model.question === question) screen.model.dismiss('closed')
  })
  const answer = await screen.choose(question)
  if (answer.kind !== 'chosen') return null
  if (answer.id === 'watch' && atWork !== null) return { kind: 'watch', records, session: atWork }
  if (answer.id === 'queue') return { kind: 'run', goal: null }
  const [left] = facts.resumable ?? []
  if (answer.id === 'resume' && left !== undefined) return { kind: 'resume', session: left.id, more: {} }
  if (answer.id === 'doctor') await person.command('doctor', '')
  return null
}

/** The session that another codemachine works on here. */
async function sessionAtWork({ records, platform }: StartPlace): Promise<string | null> {
  if ((await readRunner(records.lock, platform)) === null) return null
  return await latestSession(records, () => {})
}

/**
 * To mend what is missing, to watch what another codemachine does here (`atWork`: its
 * session), to go on where it was left, to begin what waits.
 */
function offersAtStart({ missing, resumable, queue }: StartFacts, atWork: string | null): PickerOption[] {
  const offers: PickerOption[] = []
  if (missing.length > 0) offers.push({ id: 'doctor', label: 'Look what is missing (/doctor)', hint: missing[0] ?? '' })
  if (atWork !== null) {
    return [...offers, { id: 'watch', label: 'Watch what is at work here', hint: `${atWork}, by another codemachine` }]
  }
  const [left] = resumable ?? []
  if (left?.stopped === 'cut off' || left?.stopped === 'interrupted') {
    const goal = left.goal.trim().slice(0, GOAL_CHARS)
    offers.push({ id: 'resume', label: `Go on with: ${goal}`, hint: `${left.id}, ${left.stopped}` })
  }
  if (queue !== null && queue.length > 0) offers.push({ id: 'queue', label: 'Work through the queue' })
  return offers
}
