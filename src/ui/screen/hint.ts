import { cutLine, widthOf } from '../cells.ts'

/** What decides which keys are worth telling of. */
export interface HintPlace {
  isSession: boolean
  isWatching: boolean
  /** Whether a team of agents builds. */
  isBuild?: boolean
  /** Whether it is held until the person says how it goes on. */
  isHeld?: boolean
  /** What stands in the composer. */
  text: string
  /** Whether what was sent before is searched. */
  isSearching: boolean
  /** The question that is open. */
  question: { options: readonly unknown[]; escGoesOn?: true; leavesOnInterrupt?: true } | null
  /** What is being written as its answer. */
  writes?: 'text' | 'command' | null
}

/** The keys that matter now, in as many words as fit into one line; the last way of saying it is the shortest. */
export function hintLine(place: HintPlace, columns: number): string {
  const ways = waysToSay(place)
  return ways.find(way => widthOf(way) <= columns) ?? cutLine(ways.at(-1) ?? '', columns)
}

function waysToSay(place: HintPlace): string[] {
  const { isSession, isBuild, text, isSearching, question } = place
  if (question !== null) return waysToAnswer(question, place.writes ?? null)
  if (isSearching) return ['Ctrl+R older · Enter takes it · Esc goes back', 'Enter takes it']
  if (text.startsWith('/')) return ['Enter runs it · Tab completes · Esc closes', 'Enter runs it']
  const hasText = text.trim() !== ''
  if (!isSession) return waysToStart(hasText)
  if (hasText) {
    return [
      'Enter queues it as the next session · Tab tells the agent now · Alt+Enter new line',
      'Enter queues it · Tab tells the agent',
      'Enter queue · Tab tell',
    ]
  }
  return isBuild ? waysInBuild(place) : waysInSession(place)
}

function waysToAnswer(
  { options, escGoesOn, leavesOnInterrupt }: NonNullable<HintPlace['question']>,
  writes: HintPlace['writes'],
): string[] {
  const hold = escGoesOn ? ' · Ctrl+C leaves it held' : ''
  if (options.length > 0 && writes === null) {
    const esc = escGoesOn ? 'Esc goes on' : 'Esc closes'
    return [`↑ ↓ and Enter choose · ${esc}${hold}`, `↑ ↓ and Enter choose · ${esc}`, `Enter chooses · ${esc}`]
  }
  const enter = writes === 'command' ? 'Enter runs it' : 'Enter sends it'
  const esc = options.length > 0 ? 'Esc goes back to the choices' : 'Esc goes back'
  const leave = leavesOnInterrupt ? ' · Ctrl+C leaves' : hold
  return [`${enter} · ${esc}${leave}`, `${enter} · Esc goes back`, 'Enter · Esc back']
}

function waysToStart(hasText: boolean): string[] {
  return hasText
    ? ['Enter starts it · Alt+Enter new line · @ files · Ctrl+G editor', 'Enter starts it · @ files', 'Enter starts it']
    : [
        'Type what to work on · / commands · @ files · ↑ history · ? keys · Ctrl+C twice leaves',
        'Type what to work on · / commands · @ files · ? keys',
        '/ commands · ? keys',
      ]
}

function waysInBuild({ isWatching, isHeld }: HintPlace): string[] {
  const first = isHeld ? 'Ctrl+C: Change the plan | Esc: How it goes on' : 'Ctrl+C: Interrupt'
  const pause = isHeld ? '' : ' | Esc: Pause'
  // Who only watches is to see how that ends, before what may frighten.
  if (isWatching) {
    return [
      `${first} | Ctrl+C twice: Detach | Ctrl+E: Expand logs | Ctrl+T: Tasks${pause} | ?: Keys`,
      `${first} | Ctrl+C twice: Detach | Ctrl+E: Expand logs${pause}`,
      `${first} | Ctrl+C twice: Detach`,
      'Ctrl+C twice: Detach | Ctrl+E: Logs',
    ]
  }
  return [
    `${first} | Ctrl+E: Expand logs | Ctrl+T: Tasks${pause} | ?: Keys`,
    `${first} | Ctrl+E: Expand logs | ?: Keys`,
    isHeld ? 'Ctrl+C: Plan | Esc: How it goes on' : `${first} | Ctrl+E: Expand logs`,
  ]
}

function waysInSession({ isWatching, isHeld }: HintPlace): string[] {
  const leave = isWatching ? 'Ctrl+C twice detaches' : 'Ctrl+C plan, twice leaves'
  if (isHeld) {
    return [
      `Esc offers how it goes on · ${leave} · Ctrl+E logs · Ctrl+T tasks · Ctrl+O output · ? keys`,
      `Esc offers how it goes on · ${isWatching ? leave : 'Ctrl+C plan'} · ? keys`,
      'Esc: how it goes on · ^E logs · ? keys',
    ]
  }
  return [
    `Esc interrupts · ${leave} · Ctrl+E logs · Ctrl+T tasks · Ctrl+O output · ? keys`,
    'Esc interrupt · Ctrl+C plan · Ctrl+E logs · ? keys',
    'Esc interrupt · ^E logs · ? keys',
  ]
}
