import { eventfulNight, type MadeUpNight } from './made-up-night.ts'

/** Texts that do something where they are not shown as text. Each sets `window.pwned`, or calls for what lies elsewhere. */
export const HOSTILE = [
  '<script>window.pwned = 1</script>',
  '</style></title></textarea><img src=x onerror="window.pwned = 2">',
  '<svg onload="window.pwned = 3"><a href="javascript:window.pwned=4">x</a></svg>',
  '"><iframe srcdoc="<script>parent.pwned = 5</script>"></iframe>',
  '<meta http-equiv="refresh" content="0;url=https://example.org"><base href="https://example.org/">',
  "' onmouseover='window.pwned=6' style='background:url(https://example.org/x)",
  '<!-- ]]> {{constructor.constructor("window.pwned = 7")()}} #{window.pwned = 8}',
  '[link](javascript:window.pwned=9) ![image](https://example.org/i.png) <https://example.org> www.example.org a@example.org',
  '# heading\n\n- item\n\n| a | b |\n| --- | --- |\n\n```\ncode\n```\n===\n---\n1. one',
  'left\u202eright\u2066\u001b[31mred\u001b]8;;https://example.org\u0007\u009b2J\u0000\u2028end',
].join('\n')

/** A night in which every text that comes from outside is hostile. */
export function hostileNight(): MadeUpNight {
  const text = HOSTILE
  const night = eventfulNight(text)
  const finding = { severity: 'critical' as const, file: text, line: 1, problem: text, mend: text }
  const round = 4
  const tree = 't'
  night.add({ type: 'warning', round: null, message: text })
  night.add({ type: 'model-rerouted', round, from: text, to: text, reason: text })
  night.add({ type: 'question-asked', round, question: text, text, options: [text], assumption: text })
  night.add({ type: 'plan-updated', round, explanation: text, steps: [{ step: text, status: 'pending' }] })
  night.add({ type: 'item-completed', round, item: { kind: 'agent-message', id: 'm', text, phase: null } })
  night.add({ type: 'protected-changed', round, files: [{ path: text, how: 'deleted', gates: [text] }], count: 1 })
  night.add({
    type: 'output-kept',
    round,
    output: { n: 1, name: text, file: text, bytes: 1, sha256: text, head: text },
  })
  night.gate(text, 'claim', 'failed', text)
  night.round({ outcome: { class: 'crashed', message: text }, tasks: { done: 0, total: 1, left: [text] } })
  night.add({
    type: 'savepoint',
    round,
    commit: text,
    tree: text,
    changes: { files: 1, added: 1, removed: 0, paths: [{ path: text, added: 1, removed: 0 }] },
    head: text,
    commits: [{ commit: text, subject: text }],
  })
  const worked = { class: 'worked', message: null } as const
  const answer = { verdict: 'findings' as const, summary: text, findings: [finding] }
  night.add({
    type: 'review-ended',
    round,
    review: 1,
    outcome: worked,
    answer,
    repeated: [finding],
    tree,
    durationMs: 1,
    tokens: null,
  })
  night.add({ type: 'done-refused', round, reason: 'tasks-left', detail: text })
  return night.end({ kind: 'needs-person', reason: text, hint: { do: 'say', text } }, 4)
}
