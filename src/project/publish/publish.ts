import { UserError } from '../../base/errors.ts'
import { asSentence } from '../../base/text.ts'
import type { Published } from '../../core/shapes/published.ts'
import { shellWord } from '../../platform/shell-word.ts'
import type { Redactor } from '../../secrets/redactor.ts'
import { readJournal } from '../../session/records/journal.ts'
import { allRecords, type Records } from '../../session/records/records.ts'
import type { ReportData } from '../../tell/report/report-data.ts'
import { requestBody, requestTitle, withRequestBody } from '../../tell/report/request-body.ts'
import { oneLine } from '../../tell/words/safe-text.ts'
import { isFullyCommitted, shortHash } from '../../workspace/git/commits.ts'
import { findRepository, fromLatin1 } from '../../workspace/git/git.ts'
import { placeAtHost } from '../../workspace/git/remote.ts'
import { readGuardState } from '../../workspace/guard/guarded-files.ts'
import { advanceWorktreeBranch } from '../../workspace/worktree/land.ts'
import {
  commitResult,
  isAncestor,
  listRemotes,
  lookAtRemote,
  pushCommit,
  type Remote,
  reaching,
} from '../../workspace/worktree/push.ts'
import {
  BRANCH_PREFIX,
  type Checkout,
  isWorktreeName,
  listUncommitted,
  openCheckout,
  refuseForgedWorktree,
  runGitIn,
} from '../../workspace/worktree/worktree.ts'
import { makeBundle } from '../certificate/make.ts'
import { NOTES_REF } from '../certificate/note.ts'
import { lookAtSavepoints } from '../savepoints.ts'
import type { World } from '../world.ts'
import { type Forge, type ForgePlace, type OpenRequest, openForge } from './forge.ts'
import { type ChooseRemote, chooseRemote } from './remote.ts'

/** What to publish, and how. */
interface PublishOptions extends ChooseRemote {
  /** Report of the ended session. */
  data: ReportData
  redactor: Redactor
  /** `ready`: only if it is done; null: ready once it is done. */
  state: 'draft' | 'ready' | null
  /** Title of a new request; null: from the issue or the goal. */
  title: string | null
  /** Whether to push the certificate's note too. */
  note: boolean
  /** Whether nobody checks it first. Then it pushes no branch of the person's own, and no work from before the session. */
  alone: boolean
  /** Receives the planned actions in lines; false: the person refuses. */
  confirm(lines: readonly string[]): Promise<boolean>
  /** Receives a sentence for each thing that a person should know. */
  say(text: string): void
  /** Receives the result once something was pushed; `problem`: a later failure. */
  keep(published: Published): Promise<void>
}

/**
 * Pushes a session's result to a branch of a remote, never by force and never to the default branch, and opens or updates
 * its pull or merge request. The person's checkout, index and branches do not change. Null if the person refuses. Throws a
 * `UserError` if it fails. The caller must hold the work directory.
 */
export async function publish(world: World, records: Records, options: PublishOptions): Promise<Published | null> {
  const { data, confirm, keep } = options
  if (data.outcome === null)
    throw new UserError('CM1204', `Session ${data.session} has not ended, so it has no result yet; resume it first.`)
  const checkout = await openTrusted(records.directory, world.env)
  await refuseWhileGuarded(world, records, checkout)
  const remote = await chooseRemote(checkout, await listRemotes(checkout), options)
  const place = placeOf(remote)
  await using forge = place === null ? null : await openForge(world, records, place)
  const far = reaching(checkout, world.env, world.signal)
  const result = await resultOf(world, records, options, { far, remote })
  const request = forge === null || place === null ? null : { forge, place, found: await forge.find(result.branch) }
  if (!(await confirm(linesOf(result, remote, request, options)))) return null
  await pushCommit(far, remote, result.commit, `refs/heads/${result.branch}`)
  const { branch, commit } = result
  const pushed = { pushedTo: remote.name, branch, commit, url: null, draft: false, problem: null }
  try {
    if (result.advances) await advanceWorktreeBranch(checkout, checkout.repository.root, commit)
    if (options.note) {
      await makeBundle(world, records, { session: data.session, note: true, commit, say: options.say })
      await pushCommit(far, remote, NOTES_REF, NOTES_REF)
    }
    const published = { ...pushed, ...(request === null ? {} : await openOrUpdate(request, result, options)) }
    await keep(published)
    return published
  } catch (error) {
    if (error instanceof UserError) {
      const { url = null, isDraft = false } = request?.found ?? {}
      await keep({ ...pushed, url, draft: isDraft, problem: asSentence(error.message) })
    }
    throw error
  }
}

/** A commit to push, with its request. */
interface Result {
  commit: string
  branch: string
  /** Default branch of the remote. */
  main: string
  /** Whether the branch of our worktree advances to it. */
  advances: boolean
  title: string
  isReady: boolean
  /** Sentences that the person must know. */
  notes: readonly string[]
}

async function resultOf(
  world: World,
  records: Records,
  options: PublishOptions,
  { far, remote }: { far: Checkout; remote: Remote },
): Promise<Result> {
  const { data, redactor } = options
  const { main, tip, ...target } = await targetOf(far, remote, options)
  const title = requestTitle(redactor.text(options.title ?? data.issue?.title ?? data.goal))
  const commit = await commitResult(far, {
    top: far.repository.root,
    message: `${title}\n\nSession ${data.session}`,
    remote,
    branch: target.branch,
    tip,
    isOurs: each => wasPublished(records, each),
  })
  if (await isAncestor(far, commit, main.commit))
    throw new UserError(
      'CM1204',
      `Session ${data.session} changed nothing that ${main.branch} of ${remote.name} does not have already.`,
    )
  const judged = await judge(world, records, options, { far, commit, main: main.commit })
  return { ...target, main: main.branch, title, commit, ...judged }
}

/** Where to open a request, or the open one. */
interface RequestAt {
  forge: Forge
  place: ForgePlace
  found: OpenRequest | null
}

function linesOf(
  { commit, branch, main, title, isReady, notes }: Result,
  { name, url }: Remote,
  request: RequestAt | null,
  { redactor }: PublishOptions,
): string[] {
  const pushed = `${shortHash(commit)} to ${branch} of ${name}`
  if (request === null) {
    const where = redactor.text(url.replace(/\/\/[^/@]*@/, '//'))
    return [`${pushed} (${where})`, 'That address is on no host, so only the branch is pushed.', ...notes]
  }
  const { forge, place, found } = request
  const what =
    found === null ? `a ${isReady ? '' : 'draft '}${forge.noun} into ${main}: ${title}` : `update ${found.url}`
  return [`${pushed} (${place.host}/${place.path})`, what, ...notes]
}

async function openOrUpdate(
  { forge, place, found }: RequestAt,
  { branch, main, title, isReady, notes }: Result,
  { data, redactor, note, state }: PublishOptions,
): Promise<Pick<Published, 'url' | 'draft'>> {
  const facts = { closes: closesIn(data, place), notes, check: checkOf(data, note) }
  const body = redactor.text(requestBody(data, facts))
  const isDraft = !isReady
  if (found !== null) {
    // Do not turn a request back into a draft that a person made ready.
    const isChanged = found.isDraft ? isReady : state === 'draft'
    await forge.update(found, { body: withRequestBody(found.body, body), ...(isChanged ? { isDraft } : {}) })
    return { url: found.url, draft: isChanged ? isDraft : found.isDraft }
  }
  await forge.open({ branch, main, title, body, isDraft })
  const opened = await forge.find(branch)
  if (opened !== null) return { url: opened.url, draft: isDraft }
  throw new UserError('CM1202', `The host reported no error, but the ${forge.noun} of ${branch} does not exist.`)
}

/** Opens the checkout around a directory. In our worktrees agents can write `.git`: use the repository next to it. */
async function openTrusted(directory: string, env: NodeJS.ProcessEnv): Promise<Checkout> {
  const checkout = await openCheckout(directory, env)
  const { root } = checkout.repository
  const [, main] = /^(.+)\.worktrees[/\\][^/\\]+$/.exec(root) ?? []
  const repository = main === undefined ? null : await findRepository(main).catch(() => null)
  if (repository !== null) await refuseForgedWorktree({ repository }, root)
  return checkout
}

/**
 * Our git reads what to run from the repository's settings. Agents in another of its worktrees can change them until that
 * session's guard restores them.
 */
async function refuseWhileGuarded(world: World, own: Records, { repository }: Checkout): Promise<void> {
  for (const { guard } of await allRecords(world)) {
    if (guard === own.guard) continue
    const state = await readGuardState(guard).catch(() => null)
    if (state?.guarded.has(repository.commonDir) !== true) continue
    const where = oneLine(state.workTree, 1000)
    throw new UserError(
      'CM0601',
      `codemachine does not publish while a session in ${where} could change this repository's hooks or config.`,
      {
        hint: `Publish after its end. If it was cut off, resume it: codemachine resume -C ${shellWord(state.workTree)}`,
        exitCode: 6,
      },
    )
  }
}

function placeOf({ url }: Remote): ForgePlace | null {
  return /^file:/i.test(url) ? null : placeAtHost(url)
}

/**
 * Returns where to push, and what the remote has there. A person's branch gets its own commits. Uncommitted work, or work on
 * the default branch, goes to a branch of ours.
 */
async function targetOf(checkout: Checkout, remote: Remote, { alone, data }: PublishOptions) {
  const { commonDir, gitDir } = checkout.repository
  const { ok, stdout } = await runGitIn(checkout, ['symbolic-ref', '--quiet', '--short', 'HEAD'])
  const own = ok ? fromLatin1(stdout).trim() : null
  const slug = own?.replaceAll('/', '-') ?? ''
  const beside = `${BRANCH_PREFIX}${isWorktreeName(slug) ? slug : data.session}`
  const ofSession = `${BRANCH_PREFIX}${data.session}`
  const names = [...new Set([...(own === null ? [] : [own]), beside, ofSession])]
  const { main, tips } = await lookAtRemote(checkout, remote, names)
  const isCommitted = (await listUncommitted(checkout)).length === 0
  const isWorktree = own?.startsWith(BRANCH_PREFIX) === true && gitDir !== commonDir
  const isOwn = isWorktree || (!alone && isCommitted && !tips.has(beside))
  const branch = own === null || own === main.branch ? ofSession : isOwn ? own : beside
  return { branch, main, tip: tips.get(branch) ?? null, advances: isWorktree && !isCommitted }
}

const MOST_SESSIONS = 50

/** Returns whether one of the last sessions of this directory has pushed this commit. */
async function wasPublished(records: Records, commit: string): Promise<boolean> {
  const only = 'published'
  for (const id of (await records.sessions()).slice(-MOST_SESSIONS))
    for await (const event of readJournal(records.journal(id), { only }))
      if (event.type === only && event.commit === commit) return true
  return false
}

/** Judges whether a result may count as ready, and returns sentences that the person must know. */
async function judge(
  world: World,
  records: Records,
  { data, state, note, alone, say }: PublishOptions,
  { far, commit, main }: { far: Checkout; commit: string; main: string },
): Promise<{ isReady: boolean; notes: string[] }> {
  const { changes, proof, outcome, session } = data
  const isDone = outcome?.kind === 'done'
  const tree = (isDone ? proof.tree : null) ?? changes.now?.tree ?? null
  await using open = await lookAtSavepoints(world, records, say)
  const git = open?.fingerprints.git
  const holds = git === undefined || tree === null ? null : await isFullyCommitted(git, commit, tree)
  const begin = changes.start
  const hadOwn =
    git !== undefined && begin?.head != null && (await isFullyCommitted(git, begin.head, begin.tree)) === false
  const closes = await closedBy(far, commit, main)
  if (alone && hadOwn)
    throw new UserError(
      'CM1204',
      'Nothing is pushed, because files that were uncommitted before the session would be pushed, too.',
      {
        hint: `To look at it: codemachine publish ${session}`,
      },
    )
  const why = isDone ? (holds === false ? CHANGED : null) : `Session ${session} is not done.`
  if (note && holds !== true)
    throw new UserError('CM1204', `The certificate of ${session} proves other files than these, so no note is pushed.`)
  if (state === 'ready' && why !== null) throw new UserError('CM1204', `${why} It can only be published as a draft.`)
  return {
    isReady: state !== 'draft' && isDone && holds !== false,
    notes: [
      ...(why === null ? [] : [why]),
      ...(hadOwn ? ['It holds changes from before the session, too.'] : []),
      ...(closes === null
        ? []
        : [`A message of its commits says "${closes}", which closes that issue once it is merged.`]),
    ],
  }
}

const MOST_MESSAGES = 100
const CLOSES =
  /\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?[ \t]+(?:[\w./-]{0,200}#\d+|https?:\/\/\S{1,200}\/issues\/\d+)/i

/** Returns words in the branch's commits that would close an issue, because agents write messages too; null: none. */
async function closedBy(checkout: Checkout, commit: string, main: string): Promise<string | null> {
  const log = await runGitIn(checkout, ['log', `-${MOST_MESSAGES}`, '--format=%B', commit, `^${main}`])
  const [words] = CLOSES.exec(fromLatin1(log.stdout)) ?? []
  return words === undefined ? null : oneLine(words, 200)
}

const CHANGED = 'The files are not those that were proved: they have changed since, or git ignores some.'

/** Returns the command to check it again: through the note for everyone, else on the machine with the records. */
function checkOf({ session, outcome }: ReportData, note: boolean): string {
  if (note) return `git fetch origin ${NOTES_REF}:${NOTES_REF} && codemachine verify --note`
  return `codemachine ${outcome?.kind === 'done' ? 'verify' : 'report'} ${session}`
}

/** Close only the issue that the person named, and only in the request's own repository. */
function closesIn({ issue }: ReportData, { host, path }: ForgePlace): string | null {
  if (issue === undefined || !/^https?:\/\/[^/]+\//.test(issue.url)) return null
  const { host: at, pathname } = new URL(issue.url)
  const isHere =
    at === host && pathname.toLowerCase().replace('/-/', '/') === `/${path}/issues/${issue.number}`.toLowerCase()
  return isHere ? `#${issue.number}` : null
}
