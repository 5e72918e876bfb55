import { formatCount } from '../../ui/format-count.ts'
import { oneLine } from '../../ui/safe-text.ts'
import { findSession } from '../find-session.ts'
import { askForMore } from './ask-for-more.ts'
import { resumableSessions } from './resumable-sessions.ts'
import type { SlashPlace } from './slash-place.ts'

const GOAL_CHARS = 80

/** `/resume`: which session to go on with. */
export async function chooseSession({ context, records, person, start }: SlashPlace, rest: string): Promise<void> {
  const { screen } = person
  if (start === null) return screen.notice('A session that is only watched is resumed where it runs', 'warning')
  if (start.isRunning())
    return screen.notice('A session is at work; /stop ends it, and another one can be resumed then', 'warning')
  const goOn = async (session: string) => {
    const more = await askForMore(screen, records, session)
    if (more !== null) start.resume(session, more)
  }
  if (rest.trim() !== '') return await goOn(await findSession(records, rest.trim()))
  const sessions = await resumableSessions(records, context.platform)
  if (sessions.length === 0) return screen.notice('There is no session to go on with', 'warning')
  if (start.isRunning()) return
  const answer = await screen.choose({
    title: 'Which session goes on?',
    options: sessions.map(({ id, goal, rounds, stopped }) => ({
      id,
      label: oneLine(goal.trim(), GOAL_CHARS),
      hint: `${id}, ${stopped}, ${formatCount(rounds, 'round')}`,
    })),
  })
  if (answer.kind === 'chosen') await goOn(answer.id)
}

/** `/queue`: what waits, to be begun or taken out. */
export async function chooseFromQueue({ person, start }: SlashPlace): Promise<void> {
  const { screen } = person
  const prompts = await person.queue.list()
  if (prompts.length === 0) return screen.notice('Nothing waits in the queue', 'warning')
  const canStart = start !== null && !start.isRunning()
  const answer = await screen.choose({
    title: `${formatCount(prompts.length, 'prompt')} waiting. Choose one to take it back into the composer.`,
    options: [
      ...(canStart ? [{ id: 'work', label: 'Work through the queue now' }] : []),
      ...prompts.map(({ id, prompt }) => ({
        id,
        label: oneLine(prompt.trim(), GOAL_CHARS),
      })),
    ],
  })
  if (answer.kind !== 'chosen') return
  if (answer.id === 'work') return start?.workThroughQueue()
  const prompt = prompts.find(({ id }) => id === answer.id)
  if (prompt === undefined) return
  const isTaken = await person.queue.takeBack(prompt, text => screen.model.addText(text))
  if (!isTaken) screen.notice('Its session has begun', 'warning')
}

const EFFORTS = ['minimal', 'low', 'medium', 'high', 'xhigh']

/** `/model`: with which model, and how hard it thinks. */
export async function chooseModel({ person, start, settings }: SlashPlace): Promise<void> {
  const { screen } = person
  if (start === null) return screen.notice('The model is chosen where the session is started', 'warning')
  const now = start.flags().model ?? settings.model
  const model = await screen.choose({
    title: 'Which model?',
    options: [
      { id: 'as-it-is', label: now === null ? "codex's own choice" : oneLine(now, GOAL_CHARS), hint: 'as it is' },
    ],
    freeText: 'The name of another …',
  })
  if (model.kind !== 'text' && model.kind !== 'chosen') return
  const effort = await screen.choose({
    title: 'How hard does it think?',
    options: [{ id: 'as-it-is', label: 'As it is' }, ...EFFORTS.map(id => ({ id, label: id }))],
    freeText: 'Another effort that the model knows …',
  })
  if (effort.kind !== 'text' && effort.kind !== 'chosen') return
  const chosen = effort.kind === 'text' ? effort.text.trim() : effort.id === 'as-it-is' ? null : effort.id
  start.choose({
    ...(model.kind === 'text' ? { model: model.text.trim() } : {}),
    ...(chosen === null ? {} : { effort: chosen }),
  })
  screen.notice('It counts from the next session on; -m and --effort say the same on the command line', 'good')
}
