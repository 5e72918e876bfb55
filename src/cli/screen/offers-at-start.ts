import type { PickerOption } from '../../ui/composer/picker.ts'
import type { StartFacts } from '../../ui/start/start-facts.ts'

const GOAL_CHARS = 60

/**
 * What a person may want first: to mend what is missing, to watch what another codemachine does here (`atWork`: its
 * session), to go on where it was left, to begin what waits.
 */
export function offersAtStart({ missing, resumable, queue }: StartFacts, atWork: string | null): PickerOption[] {
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
