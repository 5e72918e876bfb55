import { expect, test } from 'vitest'
import { reviewLines } from '../../../src/doors/screen/blocks/gates-and-reviews.ts'
import { roleOf } from '../../../src/doors/screen/blocks/layout.ts'
import { openTheme } from '../../../src/doors/screen/terminal/theme.ts'
import { proofSection } from '../../../src/tell/report/page/proof.ts'
import { whatIsLeft } from '../../../src/tell/report/words.ts'
import { recorded, sampleEvents } from '../../doors/screen/samples.ts'
import { badNight } from './made-up-night.ts'

const theme = {
  ...openTheme({ theme: 'plain', env: {}, reader: false }),
  paint: (role: string, text: string) => `<${role}>${text}`,
}

test.each([
  ['critical', 'bad'],
  ['major', 'warning'],
  ['minor', 'quiet'],
] as const)('a %s finding is meant alike on the screen, on the page and in what is left', (severity, tone) => {
  const data = badNight().report()
  const [finding] = data.proof.findings
  if (finding === undefined) throw new Error('That night has no finding.')
  const findings = [{ ...finding, severity }]
  const one = { ...data, proof: { ...data.proof, findings } }
  expect(proofSection(one).text).toContain(`<span class="${tone}">${severity}</span>`)
  expect(whatIsLeft(one).find(({ text }) => text.startsWith(severity))?.tone).toBe(tone)
  const [event] = recorded([
    { ...sampleEvents['review-ended'], answer: { verdict: 'findings', summary: '', findings } },
  ])
  if (event?.type !== 'review-ended') throw new Error('That is no review.')
  const lines = reviewLines(event, { columns: 200, theme, full: true })
  expect(lines.join('\n')).toContain(`<${roleOf(tone)}>${severity}`)
})
