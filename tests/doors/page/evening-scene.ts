export interface Card {
  key: string
  id: string
  place: string
  standing: string
  questions: readonly { question: string }[]
  queued: number
  outcome: { kind: string } | null
}
