import { type BuildPlace, type BuildStep, openOf } from './build-place.ts'
import { planFile } from './build-plan.ts'
import { claimDone } from './demo-memory.ts'
import { patch } from './demo-patch.ts'
import { conclude, say, shell, think } from './demo-words.ts'

/** What project-summarizer says, whenever master-mind has stopped. */
export const summary: readonly BuildStep[] = [
  () => [shell(`cat ${planFile}; git log --oneline; git status --short`)],
  place => [conclude(summaryOf(place))],
]

function summaryOf(place: BuildPlace): string {
  const open = place.plan.filter(({ done }) => !done)
  const [first] = open
  if (first === undefined)
    return 'All eight tasks are done, and the tests pass. To use it: node bin/reading-list.js books.json index.html'
  if (first.parked !== undefined)
    return 'Seven of eight tasks are done, and the tests pass. T7, the validator, needs somebody with a network. To use what there is: node bin/reading-list.js books.json index.html'
  if (openOf(place, 'T1', 'T2', 'T3', 'T4', 'T5', 'T6').length > 0)
    return `${place.plan.length - open.length} of ${place.plan.length} tasks are done. Next: ${first.id} ${first.name}.`
  return open.length === 1 && first.id === 'T7'
    ? 'Everything but T7 is done. T7 wants an answer of validator.w3.org, and there is no network here. Next: T7.'
    : `T1 to T6 are done: reading-list reads books.json and makes a page. T4 took two tries, as titles were put into the page as HTML at first. Next: ${open.map(({ id }) => id).join(' and ')}.`
}

/** A change of plan: what the person says goes into the task that is worked on last. */
export const replanning: readonly BuildStep[] = [
  place => [say('I read the plan.'), shell(`cat ${place.main} ${planFile}`)],
  place => {
    const last = place.plan.findLast(({ done }) => !done)
    if (last === undefined) return [conclude('Every task is done, so a script like me can change nothing any more.')]
    const wish = place.asked.replace(/^Change the plan:\s*/, '').trim()
    const plan = place.plan.map(task =>
      task === last ? { ...task, details: `${task.details} A person wants: ${wish}` } : task,
    )
    return [shell(`cat > ${planFile} <<'EOF'\n${JSON.stringify({ tasks: plan }, null, 2)}\nEOF`)]
  },
  () => [
    conclude(
      'What you said stands in the details of the last task that is open. A script plays my part, so it can do no more than that.',
    ),
  ],
]

/** The look at the whole, which changes nothing and may claim that all is done. */
export const lastLook: readonly BuildStep[] = [
  () => [
    say('I look as though somebody else had built it.'),
    shell('cat .codemachine/inputs/specifications.md; git log --oneline; git status --short; ls -R bin src test docs'),
  ],
  () => [shell('node --test')],
  () => [
    think(
      '**Sentence by sentence**\n\nOne page, one file, what is left first, titles as written, errors that say which book.',
    ),
    shell(
      `node bin/reading-list.js books.json /dev/stdout; echo "exit code $?"; grep -rnE "skip|only|todo" test || echo "no test is left out"`,
    ),
  ],
  memory => [patch(claimDone(memory))],
  () => [conclude('Each sentence of the specification is there, all tests pass, and I have changed nothing.')],
]
