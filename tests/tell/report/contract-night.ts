import type { ReportContract, ReportData } from '../../../src/tell/report/report-data.ts'
import { goodNight } from './made-up-night.ts'

type Sentence = ReportContract['sentences'][number]

const DIFF = `--- a/src/theme.ts
+++ b/src/theme.ts
@@ -1,2 +1,2 @@
-  if (dark) return "dark"
+  return "light"`

function sentence(id: string, more: Partial<Sentence>): Sentence {
  const run = `node --test .codemachine/checks/${id}/1/theme.test.js`
  return {
    id,
    quote: 'Add a dark mode.',
    kind: 'must',
    state: 'proved',
    reason: null,
    controls: { made: 1, caught: 1 },
    checks: [{ run, before: 'failed', now: 'passed', isFlaky: id === 'S1', output: '1 passing' }],
    versions: [{ summary: 'The theme is always light.', diff: DIFF, isCaught: true }],
    weakness: null,
    ...more,
  }
}

/** A good night with a contract: one sentence proved, one weak, one without wrong versions, one that no program can tell. */
export function withContract(): ReportData {
  const long =
    'The switch follows the system by default, until a person chooses; what they chose is kept over a restart.'
  const sentences = [
    sentence('S1', {}),
    sentence('S2', {
      quote: long,
      state: 'weak',
      controls: { made: 2, caught: 1 },
      versions: [{ summary: 'What they chose is forgotten.', diff: DIFF, isCaught: false }],
      weakness: DIFF,
    }),
    sentence('S3', {
      quote: 'Keep the old theme.',
      kind: 'keep',
      state: 'holds',
      controls: { made: 0, caught: 0 },
      versions: [],
    }),
    sentence('S4', {
      quote: 'It should look good.',
      kind: 'not-checkable',
      state: 'not-checkable',
      reason: 'That is taste.',
      controls: { made: 0, caught: 0 },
      checks: [],
      versions: [],
    }),
  ]
  const contract = {
    words: '3 of 3 sentences hold',
    holding: 3,
    proved: 1,
    checkable: 3,
    acceptedBy: 'person' as const,
  }
  return { ...goodNight().report(), contract: { ...contract, uncovered: ['with tests'], sentences } }
}
