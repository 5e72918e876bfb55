import * as v from 'valibot'
import { rewindInWords } from '../../../project/savepoints.ts'
import { findLandingPlace, landWorktree } from '../../../project/worktrees/land.ts'
import { describeLanded } from '../../../project/worktrees/land-words.ts'
import { openCheckout } from '../../../workspace/worktree/worktree.ts'
import { aName, defineTool, directory, MOST_SECONDS, seconds, session, type Tool, yesOrNo } from '../tool.ts'

const LINE = /^[^\p{Cc}]*\S[^\p{Cc}]*$/u

const message = (description: string) =>
  v.pipe(v.string(), v.maxLength(1_000), v.regex(LINE), v.description(description))

/** Whether what was proved is still true. */
export const proofTools: readonly Tool[] = [
  defineTool({
    name: 'verify',
    description:
      'Runs the gates of a done session again, to see whether its proof still holds. Call it again while it answers running.',
    effect: 'some',
    input: v.strictObject({ directory, session, seconds }),
    output: v.object({
      session: v.string(),
      directory: v.string(),
      state: v.pipe(v.picklist(['running', 'ended']), v.description('running: call verify again for the result')),
      verdict: v.pipe(
        v.nullable(v.picklist(['still-true', 'broken', 'broken-uncommitted', 'cannot-tell'])),
        v.description('null: it still runs'),
      ),
      words: v.array(v.string()),
    }),
    async run({ seconds: most = MOST_SECONDS, ...given }, call) {
      const found = await call.places.session(given.directory, given.session)
      const { id, records } = found
      const onSaid = (said: string) => call.progress(said)
      const now = await call.verifications.take(found, { mostMs: most * 1000, signal: call.signal, onSaid })
      const of = { session: id, directory: records.directory }
      const { state } = now
      if (state === 'running') return { ...of, state, verdict: null, words: [...now.said] }
      return { ...of, state, verdict: now.verdict, words: [...now.words] }
    },
  }),
]

/** What changes the person's files: only for a server that a person has started with `--allow-write`. */
export const writeTools: readonly Tool[] = [
  defineTool({
    name: 'rewind',
    description:
      'Restores the files of a directory from a savepoint, if nothing runs there. The current files become a savepoint first.',
    effect: 'files',
    input: v.strictObject({
      directory,
      to: aName('the id of a savepoint, as savepoints shows it, such as "20261121_1/3"'),
      dry_run: v.optional(yesOrNo('true or false: only show what would change')),
    }),
    output: v.object({
      to: v.string(),
      directory: v.string(),
      files: v.pipe(v.number(), v.description('how many files change')),
      words: v.array(v.string()),
      undo: v.pipe(v.nullable(v.string()), v.description('the savepoint that undoes it; null: nothing was changed')),
    }),
    async run({ directory: where, to, dry_run: isDry = false }, call) {
      const records = await call.places.recordsOf(where)
      const done = await rewindInWords(call.world, records, { to, go: !isDry }, () => {})
      return { ...done, directory: records.directory }
    },
  }),
  defineTool({
    name: 'land',
    description:
      'Merges the work of a codemachine worktree into the checked-out branch. The merge must pass the gates of both, and no session may run in either. It takes as long as the gates.',
    effect: 'files',
    input: v.strictObject({
      directory,
      worktree: v.optional(aName('the name of a worktree; left out: the only one that has something to land')),
      message: v.optional(message('a line: the message of the merge')),
      commit: v.optional(message('a line: commit the uncommitted files of the worktree first, with this message')),
      verify: v.optional(yesOrNo('true or false: whether the gates run on the merge; left out: true')),
    }),
    output: v.object({ directory: v.string(), words: v.array(v.string()) }),
    async run({ directory: where, worktree: name, message: line, commit, verify = true }, call) {
      const records = await call.places.recordsOf(where)
      const { repository } = await openCheckout(records.directory, call.world.env)
      // The merge changes all of the checkout, which may be more than what is named.
      await call.places.recordsOf(repository.root)
      const world = { ...call.world, signal: AbortSignal.any([call.world.signal, call.signal]) }
      const place = await findLandingPlace(world, records.directory, null)
      const say = (said: string) => call.progress(said)
      const { record, ...landed } = await landWorktree(world, place, { name, message: line, commit, verify, say })
      return { directory: records.directory, words: describeLanded(landed, { place, record, verify }) }
    },
  }),
]
