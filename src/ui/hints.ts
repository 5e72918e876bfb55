/** What a person can do about what is told, in words. */
export interface Hints {
  goOn: string
  /** Where a plan waits to be looked at. */
  startBuild: string
  endWait: string
  changePlan: string
  /** @param question as a person names it: `20261121_1/Q1` */
  answer(question: string): string
}

/** In a shell. */
export const SHELL_HINTS: Hints = {
  goOn: 'codemachine unpause goes on',
  startBuild: 'codemachine unpause starts the build, codemachine replan "…" changes the plan',
  endWait: 'codemachine retry ends the wait',
  changePlan: 'codemachine replan changes it again',
  answer: question => `codemachine questions answer ${question} "…" answers it`,
}

/** On the screen, where keys do it. */
export const KEY_HINTS: Hints = {
  goOn: 'Esc offers how it goes on',
  startBuild: 'Esc offers to start the build, or to change the plan',
  endWait: 'Esc offers to end the wait',
  changePlan: 'Ctrl+C changes it again',
  answer: question => `in a shell, codemachine questions answer ${question} "…" answers it`,
}
