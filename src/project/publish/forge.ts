import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as v from 'valibot'
import { Cleanup, Interrupted, UserError } from '../../base/errors.ts'
import { parsedOrNull } from '../../base/json.ts'
import { findProgram, type ProcessResult, runWithExeca } from '../../platform/run-process.ts'
import type { Records } from '../../session/records/records.ts'
import { oneLine } from '../../tell/words/safe-text.ts'
import { writableIn } from '../../workspace/git/find-git.ts'
import { agentFolders } from '../environment/agent-folders.ts'
import type { World } from '../world.ts'

/** A repository on a host such as GitHub or GitLab. */
export interface ForgePlace {
  host: string
  /** `owner/name`; on GitLab with its groups. */
  path: string
}

/** An open pull or merge request. `body` is the host's text: a person may have edited it. */
export interface OpenRequest {
  number: number
  url: string
  isDraft: boolean
  body: string
}

/** A request to open; `main`: the branch to merge into. */
interface NewRequest {
  branch: string
  main: string
  title: string
  body: string
  isDraft: boolean
}

/** An issue as on its host, written by anyone. Not safe to show. */
export interface ForgeIssue {
  number: number
  url: string
  title: string
  author: string
  body: string
  comments: readonly { author: string; body: string }[]
}

/**
 * Requests to a host, through the person's own `gh` or `glab`. Each throws a `UserError` if the program fails. Must be
 * disposed of.
 */
export interface Forge extends AsyncDisposable {
  /** `pull request` or `merge request`. */
  noun: string
  /** Returns the open request of a branch of the repository itself; null: none. */
  find(branch: string): Promise<OpenRequest | null>
  open(request: NewRequest): Promise<void>
  /** Replaces the body; `isDraft` left out: unchanged. */
  update(request: OpenRequest, change: { body: string; isDraft?: boolean }): Promise<void>
  issue(number: number): Promise<ForgeIssue>
}

/** Time bound and output bound of a program. */
const ANSWER_MS = 60_000
const ANSWER_BYTES = 8 * 1024 * 1024
const PROGRAMS = {
  gh: { install: 'https://cli.github.com', login: 'gh auth login --hostname' },
  glab: { install: 'https://gitlab.com/gitlab-org/cli', login: 'glab auth login --hostname' },
} as const
type Name = keyof typeof PROGRAMS

/** No questions, no decoration. */
const QUIET = {
  GH_PROMPT_DISABLED: '1',
  GH_NO_UPDATE_NOTIFIER: '1',
  NO_PROMPT: '1',
  GLAB_NO_PROMPT: '1',
  GLAB_CHECK_UPDATE: 'false',
  CHECK_UPDATE: 'false',
  NO_COLOR: '1',
  // The programs cut output for people to this many columns.
  COLUMNS: '500',
}

/**
 * Opens the host of a repository through `gh` or `glab`, whichever is logged in to it. Throws a `UserError` if neither is
 * installed or logged in.
 * @param records where agents work, to skip a program that they could have written; and a folder that they cannot write
 * @param answerMs how long a program may take, ms
 */
export async function openForge(
  world: World,
  { directory, temporary }: Pick<Records, 'directory' | 'temporary'>,
  place: ForgePlace,
  answerMs = ANSWER_MS,
): Promise<Forge> {
  const { env, platform } = world
  const where = await writableIn(directory, env, await agentFolders(world))
  const found: { program: Program; why: string }[] = []
  await using opened = new Cleanup()
  const folder = await makeScratch(temporary, place)
  opened.defer(() => rm(folder, { recursive: true, force: true }))
  for (const name of ['gh', 'glab'] as const) {
    const { path } = await findProgram(name, { env, platform, where })
    if (path === null) continue
    const program = new Program(name, path, { world, folder, answerMs })
    const status = await program.run(['auth', 'status', '--hostname', place.host])
    if (status.exitCode === 0) {
      const forge = name === 'gh' ? github(program, place) : gitlab(program, place)
      const held = opened.move()
      return { ...forge, [Symbol.asyncDispose]: () => held[Symbol.asyncDispose]() }
    }
    found.push({ program, why: saidBy(status, answerMs) })
  }
  const host = oneLine(place.host, 200)
  const [first] = found
  if (first === undefined) {
    const hint = `gh: ${PROGRAMS.gh.install}  glab: ${PROGRAMS.glab.install}`
    throw new UserError('CM1201', `Neither gh nor glab was found on the PATH; install the one for ${host}.`, { hint })
  }
  const names = found.map(({ program }) => program.name).join(' nor ')
  const isEither = found.length > 1 ? `Neither ${names} is` : `${names} is not`
  throw new UserError('CM1201', `${isEither} logged in to ${host}: ${first.why}.`, {
    hint: found.map(({ program }) => `${PROGRAMS[program.name].login} ${host}`).join('  or  '),
  })
}

/**
 * Creates a folder with an empty repository of this remote. `glab mr create` needs a repository. In the person's own it
 * would read `.git/glab-cli`, where agents can write, and might add a remote.
 */
async function makeScratch(temporary: string, { host, path }: ForgePlace): Promise<string> {
  const folder = await mkdtemp(join(temporary, 'publish-'))
  for (const part of ['objects', 'refs']) await mkdir(join(folder, '.git', part), { recursive: true })
  await writeFile(join(folder, '.git', 'HEAD'), 'ref: refs/heads/none\n')
  const remote = `[remote "origin"]\n\turl = https://${host}/${path}\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n`
  await writeFile(join(folder, '.git', 'config'), `[core]\n\trepositoryformatversion = 0\n${remote}`)
  return folder
}

/** Setting in which a program runs. */
interface ProgramPlace {
  world: World
  folder: string
  answerMs: number
}

/** `gh` or `glab`, run as the person and outside of the sandbox. */
class Program {
  readonly name: Name
  readonly #path: string
  readonly #place: ProgramPlace

  constructor(name: Name, path: string, place: ProgramPlace) {
    this.name = name
    this.#path = path
    this.#place = place
  }

  async run(args: readonly string[], input?: string): Promise<ProcessResult> {
    const { folder, answerMs, world } = this.#place
    const { env, signal } = world
    const result = await runWithExeca(this.#path, args, {
      directory: folder,
      env: { ...env, ...QUIET },
      encoding: 'utf8',
      outputLimit: ANSWER_BYTES,
      timeoutMs: answerMs,
      signal,
      ...(input === undefined ? {} : { input: Buffer.from(input) }),
    })
    if (signal.aborted) throw new Interrupted(signal.reason)
    return result
  }

  /** Does the same, but must succeed; `what` completes `gh could not …`. */
  async do(what: string, args: readonly string[], input?: string): Promise<string> {
    const result = await this.run(args, input)
    if (result.exitCode === 0) return result.stdout
    throw new UserError('CM1202', `${this.name} could not ${what}: ${saidBy(result, this.#place.answerMs)}.`)
  }

  /** Returns its JSON output, checked. */
  async read<T>(what: string, args: readonly string[], schema: v.GenericSchema<unknown, T>): Promise<T> {
    const read = v.safeParse(schema, parsedOrNull(await this.do(what, args)))
    if (read.success) return read.output
    throw new UserError(
      'CM1202',
      `${this.name} could not ${what}: its answer is not the JSON that codemachine expects.`,
      {
        hint: `Another version may help: ${PROGRAMS[this.name].install}`,
      },
    )
  }
}

function saidBy({ stdout, stderr, failure }: ProcessResult, answerMs: number): string {
  if (failure === 'timeout') return `it did not answer in ${answerMs / 1000} seconds`
  if (failure === 'output-limit') return `it answers more than ${ANSWER_BYTES / 1024 ** 2} MiB`
  const lines = [...stderr.split('\n'), ...stdout.split('\n')].map(line =>
    line.trim().replace(/^(?:[x✗X•!]|error:) */, ''),
  )
  // If there are several lines, the first only names the host.
  const said = lines.filter(line => line !== '' && !/^[\w.-]+:?$/.test(line))
  return oneLine(said[0] ?? failure ?? 'it does not say why', 300).replace(/\.$/, '')
}

/** An empty text may be null. */
const text = v.nullish(v.string(), '')
const author = (key: 'login' | 'username') =>
  v.optional(
    v.pipe(
      v.nullable(v.looseObject({ [key]: text })),
      v.transform(who => String(who?.[key] ?? '')),
    ),
    null,
  )
const number = v.pipe(v.number(), v.integer(), v.minValue(1))
const address = v.pipe(v.string(), v.maxLength(2000), v.regex(/^https?:\/\/[^\s\p{Cc}]+$/iu))

const pullRequests = v.array(
  v.object({ number, url: address, isDraft: v.boolean(), body: text, isCrossRepository: v.boolean() }),
)
const githubIssue = v.object({
  number,
  url: address,
  title: text,
  body: text,
  author: author('login'),
  comments: v.optional(v.array(v.object({ author: author('login'), body: text })), []),
})

function github(gh: Program, { host, path }: ForgePlace): Omit<Forge, keyof AsyncDisposable> {
  const repo = ['--repo', `${host}/${path}`]
  return {
    noun: 'pull request',
    async find(branch) {
      const fields = 'number,url,isDraft,body,isCrossRepository'
      const args = ['pr', 'list', ...repo, '--head', branch, '--state', 'open', '--limit', '20', '--json', fields]
      const all = await gh.read(`look for a pull request of ${branch}`, args, pullRequests)
      return ownIn(all)
    },
    async open({ branch, main, title, body, isDraft }) {
      const draft = isDraft ? ['--draft'] : []
      const args = [
        'pr',
        'create',
        ...repo,
        '--head',
        branch,
        '--base',
        main,
        `--title=${title}`,
        '--body-file',
        '-',
        ...draft,
      ]
      await gh.do('open a pull request', args, body)
    },
    async update({ number }, { body, isDraft }) {
      await gh.do(`update pull request ${number}`, ['pr', 'edit', String(number), ...repo, '--body-file', '-'], body)
      if (isDraft === undefined) return
      await gh.do(`change the draft ${number}`, [
        'pr',
        'ready',
        String(number),
        ...repo,
        ...(isDraft ? ['--undo'] : []),
      ])
    },
    async issue(number) {
      const fields = 'number,url,title,body,author,comments'
      return await gh.read(
        `read issue ${number}`,
        ['issue', 'view', String(number), ...repo, '--json', fields],
        githubIssue,
      )
    },
  }
}

const mergeRequests = v.array(
  v.pipe(
    v.object({
      iid: number,
      web_url: address,
      draft: v.optional(v.boolean(), false),
      description: text,
      source_project_id: v.number(),
      target_project_id: v.number(),
    }),
    v.transform(({ iid, web_url: url, draft: isDraft, description, source_project_id, target_project_id }) => {
      return {
        number: iid,
        url,
        isDraft,
        body: description,
        isCrossRepository: source_project_id !== target_project_id,
      }
    }),
  ),
)
const notes = v.optional(
  v.nullable(v.array(v.object({ author: author('username'), body: text, system: v.optional(v.boolean(), false) }))),
  [],
)
const gitlabIssue = v.pipe(
  v.object({ iid: number, web_url: address, title: text, description: text, author: author('username'), Notes: notes }),
  v.transform(({ iid, web_url: url, description, Notes, ...rest }) => {
    return { ...rest, number: iid, url, body: description, comments: (Notes ?? []).filter(({ system }) => !system) }
  }),
)

function gitlab(glab: Program, { host, path }: ForgePlace): Omit<Forge, keyof AsyncDisposable> {
  const repo = ['--repo', `https://${host}/${path}`]
  return {
    noun: 'merge request',
    async find(branch) {
      const args = ['mr', 'list', ...repo, '--source-branch', branch, '--per-page', '20', '--output', 'json']
      const all = await glab.read(`look for a merge request of ${branch}`, args, mergeRequests)
      return ownIn(all)
    },
    async open({ branch, main, title, body, isDraft }) {
      const branches = ['--source-branch', branch, '--target-branch', main]
      const texts = [`--title=${title}`, `--description=${body}`, ...(isDraft ? ['--draft'] : [])]
      await glab.do('open a merge request', [
        'mr',
        'create',
        ...repo,
        '--head',
        `https://${host}/${path}`,
        ...branches,
        ...texts,
        '--yes',
      ])
    },
    async update({ number }, { body, isDraft }) {
      const draft = isDraft === undefined ? [] : [isDraft ? '--draft' : '--ready']
      const args = ['mr', 'update', String(number), ...repo, `--description=${body}`, ...draft]
      await glab.do(`update merge request ${number}`, args)
    },
    async issue(number) {
      const args = ['issue', 'view', String(number), ...repo, '--comments', '--per-page', '100', '--output', 'json']
      return await glab.read(`read issue ${number}`, args, gitlabIssue)
    },
  }
}

/** A fork may have a branch of the same name. */
function ownIn(all: readonly (OpenRequest & { isCrossRepository: boolean })[]): OpenRequest | null {
  return all.find(({ isCrossRepository }) => !isCrossRepository) ?? null
}
