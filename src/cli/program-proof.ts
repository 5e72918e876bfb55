import { type Command, Option } from 'commander'
import type { ReviewFlags } from './commands/review.ts'
import type { CliContext, Ended } from './context.ts'
import { codexBinOption, type DirectoryFlags, directoryOf, withDirectory } from './flags.ts'

/** The commands of the morning: what was done, whether it is true, and how to take it over or undo it. */
export function addProof(program: Command, context: CliContext, ended: Ended): void {
  addReport(program, context, ended)
  addQuestions(program, context, ended)
  addVerify(program, context, ended)
  addReview(program, context, ended)
  addSavepoints(program, context, ended)
  addLand(program, context, ended)
}

interface ReportFlags {
  html?: true
  md?: true
  json?: true
  open?: true
  output?: string
  atEnd?: true
}

function addReport(program: Command, context: CliContext, ended: Ended): void {
  withDirectory(program.command('report'))
    .description('what a session has done: the outcome and its proof, changes, rounds, and what is left')
    .argument('[session]', 'the session; without it, the newest')
    .addOption(new Option('--html', 'as a page with charts, in one file').conflicts(['md', 'json']))
    .addOption(new Option('--md', 'as Markdown').conflicts(['json', 'open']))
    .addOption(new Option('--json', 'as JSON').conflicts('open'))
    .option('--open', 'open the page in the browser')
    .option('--output <file>', 'where it is written to; - is stdout')
    .addOption(new Option('--at-end').hideHelp())
    .action(async (session: string | undefined, flags: DirectoryFlags & ReportFlags) => {
      const { report } = await import('./commands/report.ts')
      const format = flags.atEnd ? 'at-end' : flags.html ? 'html' : flags.md ? 'md' : flags.json ? 'json' : 'card'
      const { open = false, output = null } = flags
      const place = { directory: directoryOf(context, flags), named: flags.cd ?? null }
      ended(await report(context, { ...place, session: session ?? null, format, open, output }))
    })
}

function addQuestions(program: Command, context: CliContext, ended: Ended): void {
  const load = () => import('./commands/questions.ts')
  const questions = withDirectory(program.command('questions'))
    .argument('[session]', 'the session; without it, the newest ones')
    .description('what the agent would have asked, and what it assumed instead')
    .option('--all', 'also what is answered, of all sessions')
    .option('--json', 'as JSON')
    .action(async (session: string | undefined, flags: DirectoryFlags & { all?: true; json?: true }) => {
      const { all = false, json = false } = flags
      const options = { directory: directoryOf(context, flags), session: session ?? null, all, json }
      ended(await (await load()).questions(context, options))
    })
  withDirectory(questions.command('answer'))
    .argument('<id>', 'the question, as `questions` shows it; Q1 for that of the newest session')
    .argument('<answer...>', 'the answer, or the number of an option; - reads it from standard input')
    .description('answer a question: the answer becomes a prompt in the queue')
    .option('--again', 'answer it although that was done already')
    .action(async (id: string, words: string[], flags: DirectoryFlags & { again?: true }) => {
      const answer = words.join(' ')
      const directory = directoryOf(context, { ...questions.opts<DirectoryFlags>(), ...flags })
      const options = { directory, id, answer, again: flags.again ?? false }
      ended(await (await load()).answerQuestion(context, options))
    })
}

function addVerify(program: Command, context: CliContext, ended: Ended): void {
  withDirectory(program.command('verify'))
    .argument('[session]', 'the session; without it, the newest that is done')
    .description('run the gates of a session that is done again: still true, broken since which commit, or cannot tell')
    .addOption(codexBinOption())
    .option('--json', 'as JSON')
    .action(async (session: string | undefined, flags: DirectoryFlags & { codexBin?: string; json?: true }) => {
      const { verify } = await import('./commands/verify.ts')
      const { json = false, ...rest } = flags
      ended(await verify(context, { ...rest, directory: directoryOf(context, flags), session: session ?? null, json }))
    })
}

function addReview(program: Command, context: CliContext, ended: Ended): void {
  withDirectory(program.command('review'))
    .argument('[session]', 'the session whose work is reviewed; without it, the newest')
    .description('have a reviewer look at the work of a session with fresh eyes; it changes nothing')
    .option('--goal <text>', 'review what is not committed, by this goal; - reads it from standard input')
    .option('-m, --model <name>', "the reviewer's model (that of the settings)")
    .option('--effort <level>', 'its reasoning effort: low, medium, high, …')
    .addOption(codexBinOption())
    .option('--json', 'as JSON')
    .action(async (session: string | undefined, flags: ReviewFlags) => {
      const { review } = await import('./commands/review.ts')
      ended(await review(context, session ?? null, flags))
    })
}

type DiffFlags = DirectoryFlags & { stat?: true; json?: true }
type PruneFlags = DirectoryFlags & { olderThan?: string; largerThan?: string; all?: true; dryRun?: true }

function addSavepoints(program: Command, context: CliContext, ended: Ended): void {
  withDirectory(program.command('savepoints'))
    .argument('[session]', 'only those of this session')
    .description('the states of the files that were kept: what each session began with, and what each round left')
    .option('--json', 'as JSON')
    .action(async (session: string | undefined, flags: DirectoryFlags & { json?: true }) => {
      const { savepoints } = await import('./commands/savepoints.ts')
      const options = { directory: directoryOf(context, flags), session: session ?? null, json: flags.json ?? false }
      ended(await savepoints(context, options))
    })
  withDirectory(program.command('diff'))
    .argument('[from]', 'a savepoint, such as 3, 20261121_1/3 or start; without it, start')
    .argument('[to]', 'a savepoint; without it, now')
    .description('what has changed in the files since the newest session began, or between two savepoints')
    .option('--stat', 'only which files, and how many lines')
    .option('--json', 'the same as JSON')
    .action(async (from: string | undefined, to: string | undefined, flags: DiffFlags) => {
      const { diff } = await import('./commands/diff.ts')
      const { stat = false, json = false } = flags
      ended(
        await diff(context, { directory: directoryOf(context, flags), from: from ?? null, to: to ?? null, stat, json }),
      )
    })
  withDirectory(program.command('rewind'))
    .argument('<savepoint>', 'a savepoint, such as 3 (after round 3), 20261121_1/3 or start')
    .description('make the files those of a savepoint; only files change, and it can be undone')
    .option('-n, --dry-run', 'only say what would change')
    .action(async (to: string, flags: DirectoryFlags & { dryRun?: true }) => {
      const { rewind } = await import('./commands/rewind.ts')
      ended(await rewind(context, { directory: directoryOf(context, flags), to, dryRun: flags.dryRun ?? false }))
    })
  withDirectory(program.command('prune [session]'))
    .description(
      'let old savepoints go, or those of a session, and give their room back; the newest session keeps its own',
    )
    .option('--older-than <duration>', 'those of sessions that are older (30d)')
    .option('--larger-than <size>', 'the oldest, until the others take no more than that, such as 2G')
    .option('--all', 'every one, those of the newest session, too')
    .option('-n, --dry-run', 'only say what would go')
    .action(async (session: string | undefined, flags: PruneFlags) => {
      const { pruneSavepoints } = await import('./commands/prune.ts')
      const { olderThan = null, largerThan = null, all = false, dryRun = false } = flags
      const directory = directoryOf(context, flags)
      const options = { directory, session: session ?? null, olderThan, largerThan, all, dryRun }
      ended(await pruneSavepoints(context, options))
    })
}

function addLand(program: Command, context: CliContext, ended: Ended): void {
  withDirectory(program.command('land'))
    .argument('[name]', 'the worktree; without it, the only one with something to land')
    .description('merge what was done in a worktree into the branch that is checked out here')
    .option('--message <text>', 'the message of the merge')
    .option('--commit <text>', 'first commit, with this message, what is not committed in the worktree')
    .action(async (name: string | undefined, flags: DirectoryFlags & { message?: string; commit?: string }) => {
      const { land } = await import('./commands/land.ts')
      const { message = null, commit = null } = flags
      ended(await land(context, { directory: directoryOf(context, flags), name: name ?? null, message, commit }))
    })
}
