import { signal } from '@preact/signals'
import type { SessionReport } from '../../../tell/words/status.ts'
import { connection, follow, get, type Told } from './client.ts'

/** A question of an agent that nobody has answered. */
export interface AskedQuestion {
  question: string
  text: string
  options: readonly string[]
  assumption: string
}

/** A session as the server tells it. */
export interface Card {
  key: string
  id: string
  place: string
  goal: string
  call: string | null
  directory: string
  worktree: string | null
  standing: SessionReport['standing'] | 'broken'
  outcome: SessionReport['outcome']
  problem: string | null
  report: SessionReport | null
  /** How old the report was when it came, ms. */
  ageMs: number
  questions: readonly AskedQuestion[]
  queued: number
}

/** This device as the server knows it. */
interface Me {
  device: { id: string; name: string; right: 'look' | 'steer' }
  version: string
  /** Whether the page was opened by https, or on the machine that serves it. */
  isPrivate: boolean
  push: { publicKey: string } | null
}

/** The sessions, the newest first, of `count` that there are; null: none have come yet. */
export const cards = signal<readonly Card[] | null>(null)
export const count = signal(0)
/** When they came, by the clock of this device; Unix time, ms. */
export const arrivedAt = signal(0)
/** Whether all of them have been read once. */
export const isWhole = signal(false)
export const me = signal<Me | null>(null)
/** The version of the server; null: it has not said so yet. */
export const serverVersion = signal<string | null>(null)

/** Whether this device may steer. */
export function maySteer(): boolean {
  return me.value?.device.right === 'steer'
}

/** Follows the sessions until the signal aborts. */
export async function followCards(over: AbortSignal): Promise<void> {
  const readMe = async () => {
    me.value = { ...(await get<Omit<Me, 'isPrivate'>>('me', over)), isPrivate: isSecureContext }
  }
  void readMe().catch(() => {})
  const onTold = ({ data }: Told<{ version: string; cards: readonly Card[]; count: number; isWhole: boolean }>) => {
    serverVersion.value = data.version
    // Asked again where the first answer was lost, or the server is another one.
    if (me.value?.version !== data.version) void readMe().catch(() => {})
    if (!data.isWhole && data.cards.length === 0) return
    isWhole.value = data.isWhole
    count.value = data.count
    arrivedAt.value = Date.now()
    cards.value = data.cards
  }
  await follow(
    () => 'now',
    onTold,
    over,
    state => {
      connection.value = state
    },
  )
}

/** Whether a session waits for a person. */
export function needsPerson({ questions, report, outcome }: Card): boolean {
  if (outcome !== null) return outcome.kind === 'needs-person'
  return questions.length > 0 || report?.decision != null
}

/** Whether a session has ended with assumptions that nobody has checked. */
export function hasUnchecked({ questions, outcome }: Card): boolean {
  return outcome !== null && questions.length > 0
}

/** What the page looks like on this device. */
export type Theme = 'system' | 'light' | 'dark'

const THEME = 'codemachine.theme'

/** The theme that was chosen here; without one that of the system. */
export function chosenTheme(): Theme {
  const kept = localStorage.getItem(THEME)
  return kept === 'light' || kept === 'dark' ? kept : 'system'
}

/** Keeps a theme for this device, and shows the page in it. */
export function chooseTheme(theme: Theme): void {
  localStorage.setItem(THEME, theme)
  applyTheme()
}

/** Shows the page in the theme that was chosen. */
export function applyTheme(): void {
  document.documentElement.dataset.theme = chosenTheme()
}
