import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { FileStep, FileVariable, FlowFile, Placed } from '../../../src/modes/flow/file/file.ts'
import { type FreezeOptions, freeze, type RunValue } from '../../../src/modes/flow/file/freeze.ts'
import { changedSources } from '../../../src/modes/flow/file/prompts.ts'
import { cpuMs, timesSlower } from '../../support/cpu-time.ts'
import { promise } from '../../support/promise.ts'

const FILE = '.codex-flow/workflows/commit.workflow.toml'
const PROMPT = 'prompts/commit.md'

/** A project with files, a real directory that is removed in the end. */
async function makeProject(files: Readonly<Record<string, string | Buffer>> = {}) {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'codemachine-flow-')))
  const project = {
    root,
    write: async (path: string, content: string | Buffer) => {
      await mkdir(dirname(join(root, path)), { recursive: true })
      await writeFile(join(root, path), content)
    },
    link: async (path: string, target: string) => {
      await mkdir(dirname(join(root, path)), { recursive: true })
      await symlink(target, join(root, path))
    },
    [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true }),
  }
  await project.write(FILE, '')
  for (const [path, content] of Object.entries(files)) await project.write(path, content)
  return project
}

const placed = <T>(value: T, place = 'agents.commit.prompt', line = 3, column = 10): Placed<T> => ({
  value,
  place,
  line,
  column,
})

interface StepWords {
  prompt?: string
  schema?: string
  output?: { path: string; append?: boolean }
  variables?: readonly string[]
}

/** A workflow file as its reader gives it. */
function fileOf(steps: readonly StepWords[], vars: Readonly<Record<string, FileVariable>> = {}): FlowFile {
  const fileSteps = steps.map(({ prompt = 'prompts/commit.md', schema, output, variables = [] }, at): FileStep => {
    const place = `workflow.steps[${at}]`
    const line = 10 * (at + 1)
    return {
      place,
      line,
      column: 1,
      index: at + 1,
      id: `step-${at + 1}`,
      stem: `step-${at + 1}`,
      description: null,
      work: {
        kind: 'agent',
        agent: 'commit',
        engine: 'codex',
        model: null,
        args: [],
        prompt: placed(prompt),
        input: placed(
          variables.map(variable => ({ variable })),
          `${place}.input.template`,
          line + 2,
          15,
        ),
        schema: schema === undefined ? null : placed(schema, `${place}.schema`, line + 1, 12),
        rounds: 10,
      },
      verify: [],
      retries: 0,
      approve: false,
      timeoutMs: null,
      when: null,
      readOnly: false,
      output:
        output === undefined
          ? { kind: 'stdout' }
          : {
              kind: 'file',
              path: placed(output.path, `${place}.output.path`, line + 5, 12),
              append: output.append ?? false,
            },
      variables: variables.map((name, nth) => placed(name, `${place}.input.template`, line + 2, 20 + nth)),
    }
  })
  return {
    file: FILE,
    form: 'newer',
    mock: true,
    parallel: null,
    engines: { codex: { bin: null, args: [] }, codemachine: { bin: null, args: [] } },
    workflows: [{ place: 'workflow', line: 8, column: 1, name: 'commit_flow', description: null, steps: fileSteps }],
    vars: new Map(Object.entries(vars).map(([name, value], at) => [name, placed(value, `vars.${name}`, 900 + at, 1)])),
  }
}

function freezeIn(root: string, file: FlowFile, options: Partial<FreezeOptions> = {}) {
  const [workflow] = file.workflows
  if (workflow === undefined) throw new Error('The file has no workflow')
  return freeze(file, workflow, {
    root,
    source: { path: join(root, FILE), sha256: 'f'.repeat(64) },
    given: new Map(),
    runValue: null,
    secretIn: () => null,
    signal: new AbortController().signal,
    ...options,
  })
}

async function frozen(...[root, file, options]: Parameters<typeof freezeIn>) {
  const result = await freezeIn(root, file, options)
  if ('mistakes' in result) throw new Error(JSON.stringify(result.mistakes))
  return result
}

async function mistakes(...[root, file, options]: Parameters<typeof freezeIn>) {
  const result = await freezeIn(root, file, options)
  if (!('mistakes' in result)) throw new Error('There are no mistakes')
  return result.mistakes.map(
    ({ file, line, column, place, problem }) => `${file}:${line}:${column}: ${place}: ${problem}`,
  )
}

promise(
  'O42',
  'Prompts, schemas and values of a workflow are read once, before it starts, from the project alone, and what is wrong with one has its place in the file',
)
describe('a prompt of a workflow', () => {
  test('is looked for beside the file, then in the .codex-flow above it, then in the root of the project', async () => {
    await using project = await makeProject({ 'prompts/commit.md': 'root' })
    const found = async () => {
      const { plan } = await frozen(project.root, fileOf([{}]))
      const work = plan.steps[0]?.work
      return work?.kind === 'agent' ? work.prompt : null
    }
    expect(await found()).toEqual({ path: 'prompts/commit.md', found: 'prompts/commit.md', text: 'root' })
    await project.write('.codex-flow/prompts/commit.md', 'flow')
    expect(await found()).toMatchObject({ found: '.codex-flow/prompts/commit.md', text: 'flow' })
    await project.write('.codex-flow/workflows/prompts/commit.md', 'beside')
    expect(await found()).toMatchObject({ found: '.codex-flow/workflows/prompts/commit.md', text: 'beside' })
  })

  test.each([
    [
      'that is not there',
      {},
      `there is no prompt "${PROMPT}" in .codex-flow/workflows, .codex-flow or the project's root; write it, or correct the path`,
    ],
    [
      'with a name that is nearly right',
      { 'prompts/comit.md': 'x' },
      `there is no prompt "${PROMPT}" in .codex-flow/workflows, .codex-flow or the project's root; the nearest is "prompts/comit.md"`,
    ],
    ['that is empty', { [PROMPT]: ' \n' }, `"${PROMPT}" is empty; write the prompt`],
    [
      'that is binary',
      { [PROMPT]: Buffer.from([0x50, 0, 0x4b]) },
      `"${PROMPT}" is not text (UTF-8); a prompt is a text file`,
    ],
    [
      'that is not UTF-8',
      { [PROMPT]: Buffer.from([0x66, 0xfc, 0x72]) },
      `"${PROMPT}" is not text (UTF-8); a prompt is a text file`,
    ],
    [
      'of 5 MB',
      { [PROMPT]: Buffer.alloc(5_000_000, 'x') },
      `"${PROMPT}" has 4.8 MiB, and a prompt may have at most 1.0 MiB; make it shorter`,
    ],
    [
      'that is a folder',
      { [`${PROMPT}/x`]: 'x' },
      `"${PROMPT}" cannot be read as a prompt: it is not a regular file; write a file in its place`,
    ],
  ])('%s is a mistake with its place, once for all its steps', async (_, files, problem) => {
    await using project = await makeProject(files)
    expect(await mistakes(project.root, fileOf([{}, {}]))).toEqual([`${FILE}:3:10: agents.commit.prompt: ${problem}`])
  })

  test.each([
    [
      '/etc/hostname',
      `"/etc/hostname" is an absolute path, which works on one machine only. Write it relative to this file, or to the project's root`,
    ],
    [
      '~/x.md',
      `"~/x.md" is an absolute path, which works on one machine only. Write it relative to this file, or to the project's root`,
    ],
    ['../../../x.md', '"../../../x.md" leads out of the project; put the file into the project'],
    ['links/out.md', '"links/out.md" leads out of the project by a link; put the file into the project'],
    [
      'links/folder/hostname',
      '"links/folder/hostname" leads out of the project by a link; put the file into the project',
    ],
    ['links/gone.md', '"links/gone.md" cannot be followed (ENOENT); put a file there'],
    ['links/circle.md', '"links/circle.md" cannot be followed (ELOOP); put a file there'],
    ['pipe', '"pipe" cannot be read as a prompt: it is not a regular file; write a file in its place'],
    ['', '"" names no file; write its path'],
    ['a\u0000b', '"a\\u0000b" has a control character; write a plain path'],
  ])('%j is no path of one', async (prompt, problem) => {
    await using project = await makeProject()
    await project.link('links/out.md', '/etc/hostname')
    await project.link('links/folder', '/etc')
    await project.link('links/gone.md', 'none.md')
    await project.link('links/circle.md', 'circle.md')
    execFileSync('mkfifo', [join(project.root, 'pipe')])
    expect(await mistakes(project.root, fileOf([{ prompt }]))).toEqual([
      `${FILE}:3:10: agents.commit.prompt: ${problem}`,
    ])
  })

  test('may be reached by a link or by ".." that stays in the project, and is named by where it lies', async () => {
    await using project = await makeProject({ 'shared/commit.md': 'shared', '.codex-flow/one.md': 'one' })
    await project.link('.codex-flow/workflows/commit.md', '../../shared/commit.md')
    const { plan } = await frozen(project.root, fileOf([{ prompt: 'commit.md' }, { prompt: '../one.md' }]))
    expect(plan.steps.map(({ work }) => (work.kind === 'agent' ? work.prompt.found : null))).toEqual([
      'shared/commit.md',
      '.codex-flow/one.md',
    ])
  })

  promise(
    'O44',
    'What a session keeps as it is, such as a workflow with its prompts, holds no secret: nothing is begun with one',
  )
  test('with a secret in it is refused where it is named', async () => {
    await using project = await makeProject({ [PROMPT]: 'Log in with sk-123456.' })
    const secretIn = (text: string) => (text.includes('sk-123456') ? 'MODEL_KEY' : null)
    expect(await mistakes(project.root, fileOf([{}]), { secretIn })).toEqual([
      expect.stringMatching(
        / "[^"]*commit\.md" holds the secret MODEL_KEY; agents must not get secrets, so leave it out$/,
      ),
    ])
  })

  test('of a file that lies outside of the project is found beside it, and nowhere else outside', async () => {
    await using project = await makeProject()
    await using elsewhere = await makeProject({
      'flows/prompts/commit.md': 'theirs',
      'secret.md': 'x',
      '.codex-flow/x.md': 'x',
    })
    const source = { path: join(elsewhere.root, 'flows/a.toml'), sha256: 'f'.repeat(64) }
    const { plan } = await frozen(project.root, fileOf([{}]), { source })
    const found = join(elsewhere.root, 'flows/prompts/commit.md')
    expect(plan.file).toBe(source.path)
    expect(plan.sources.map(({ path }) => path)).toEqual([source.path, found])
    expect(plan.steps[0]?.work).toMatchObject({ prompt: { found, text: 'theirs' } })
    expect(await mistakes(project.root, fileOf([{ prompt: '../secret.md' }]), { source })).toEqual([
      `${FILE}:3:10: agents.commit.prompt: "../secret.md" leads out of the project; put the file into the project`,
    ])
    expect(await mistakes(project.root, fileOf([{ prompt: 'x.md' }]), { source })).toEqual([
      `${FILE}:3:10: agents.commit.prompt: there is no prompt "x.md" in ${elsewhere.root}/flows or the project's root; write it, or correct the path`,
    ])
  })
})

const SCHEMA = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  properties: { verdict: { enum: ['good', 'bad'] }, parts: { type: 'array', items: { $ref: '#/$defs/part' } } },
  required: ['verdict', 'parts'],
  additionalProperties: false,
  $defs: {
    part: {
      type: 'object',
      properties: {
        name: { type: 'string', pattern: '^[a-z]+$' },
        parts: { type: 'array', items: { $ref: '#/$defs/part' } },
      },
    },
  },
}

promise('O42')
describe('a schema of a workflow', () => {
  test('is kept as it is, and a part of it may lead back to itself', async () => {
    await using project = await makeProject({ [PROMPT]: 'x', 'answer.schema.json': JSON.stringify(SCHEMA) })
    const { plan } = await frozen(project.root, fileOf([{ schema: 'answer.schema.json' }]))
    expect(plan.steps[0]?.work).toMatchObject({ schema: SCHEMA })
    expect(JSON.parse(JSON.stringify(plan))).toEqual(plan)
    expect(plan.sources.map(({ path }) => path)).toEqual([FILE, PROMPT, 'answer.schema.json'])
  })

  test('that cannot check an answer is a mistake', async () => {
    await using project = await makeProject({ [PROMPT]: 'x', 's.json': '{"properties": []}' })
    expect(await mistakes(project.root, fileOf([{ schema: 's.json' }]))).toEqual([
      `${FILE}:11:12: workflow.steps[0].schema: "s.json" is not a JSON Schema that codemachine can use: \`properties\` is []; it must be an object`,
    ])
  })

  test('of more than 256 KiB, or that is not there, is a mistake', async () => {
    await using project = await makeProject({ [PROMPT]: 'x', 's.json': Buffer.alloc(256 * 1024 + 1, ' ') })
    expect(await mistakes(project.root, fileOf([{ schema: 's.json' }, { schema: 'none' }]))).toEqual([
      `${FILE}:11:12: workflow.steps[0].schema: "s.json" has 256 KiB, and a JSON Schema may have at most 256 KiB; make it shorter`,
      `${FILE}:21:12: workflow.steps[1].schema: there is no JSON Schema "none" in .codex-flow/workflows, .codex-flow or the project's root; write it, or correct the path`,
    ])
  })
})

promise(
  'O43',
  'An output of a workflow goes to a file of the project, through no link, and never into `.git`, `.codemachine` or `.codex-flow/runtime`',
)
describe('the file for an output', () => {
  test.each([
    ['docs/plan.md', null],
    ['new/folders/plan.md', null],
    ['größe/计划.md', null],
    ['.codex-flow/notes.md', null],
    ['/tmp/x.md', `is an absolute path; write one from the project's root, such as "docs/plan.md"`],
    ['C:/x.md', `is an absolute path; write one from the project's root, such as "docs/plan.md"`],
    ['docs/../x.md', 'has ".." in it; write a path within the project'],
    ['', 'names no file; write its path, such as "docs/plan.md"'],
    ['docs/', 'is a folder; name a file in it'],
    ['docs', 'is a folder; name a file in it'],
    ['.', 'is not a plain path; write one such as "docs/plan.md"'],
    ['docs//plan.md', 'is not a plain path; write one such as "docs/plan.md"'],
    ['docs\\plan.md', 'is not a plain path; write one such as "docs/plan.md"'],
    ['.git/config', 'lies in .git or .codemachine, where a workflow may not write; name another file'],
    ['sub/.GIT /hooks/pre-commit', 'lies in .git or .codemachine, where a workflow may not write; name another file'],
    ['.codemachine/agents/x.md', 'lies in .git or .codemachine, where a workflow may not write; name another file'],
    ['.codex-flow/runtime/logs/x.log', `lies in .codex-flow/runtime, which is codemachine's own; name another file`],
    ['.Codex-Flow/Runtime/x', `lies in .codex-flow/runtime, which is codemachine's own; name another file`],
    ['link.md', 'is a link; remove it, or name another file'],
    ['linked/plan.md', 'leads through linked, which is a link; name a file in folders of the project'],
    ['docs/there.md/plan.md', 'leads through docs/there.md, which is no folder; name a file in folders of the project'],
    ['pipe', 'is no regular file; name another one'],
  ])('may be %j: %s', async (path, problem) => {
    await using project = await makeProject({ [PROMPT]: 'x', 'docs/there.md': 'x' })
    await project.link('link.md', 'docs/there.md')
    await project.link('linked', 'docs')
    execFileSync('mkfifo', [join(project.root, 'pipe')])
    const result = await freezeIn(project.root, fileOf([{ output: { path } }]))
    if (problem !== null) {
      expect(result).toMatchObject({ mistakes: [{ line: 15, column: 12, place: 'workflow.steps[0].output.path' }] })
      expect('mistakes' in result && result.mistakes[0]?.problem).toBe(`${JSON.stringify(path)} ${problem}`)
    } else expect(result).toMatchObject({ plan: { steps: [{ output: { kind: 'file', path, append: false } }] } })
  })

  test('of one step cannot lie below that of another', async () => {
    await using project = await makeProject({ [PROMPT]: 'x' })
    const steps = ['docs', 'docs/plan.md', 'docs/plan.md', 'docs2'].map(path => ({ output: { path } }))
    expect(await mistakes(project.root, fileOf(steps))).toEqual([
      `${FILE}:15:12: workflow.steps[0].output.path: "docs" is used as a folder by "docs/plan.md", of another step; name another file`,
    ])
  })

  test('to which is added has to be a text, and not a huge one', async () => {
    await using project = await makeProject({ [PROMPT]: 'x', 'log.md': 'x', 'log.bin': Buffer.from([0xff]) })
    await project.write('huge.md', Buffer.alloc(16 * 1024 * 1024 + 1, 'x'))
    const paths = ['log.md', 'log.bin', 'huge.md']
    const file = (append: boolean) => fileOf(paths.map(path => ({ output: { path, append } })))
    expect(await mistakes(project.root, file(true))).toEqual([
      `${FILE}:25:12: workflow.steps[1].output.path: "log.bin" cannot be added to: it is not valid UTF-8; write it as UTF-8 text`,
      `${FILE}:35:12: workflow.steps[2].output.path: "huge.md" cannot be added to: it is larger than 16 MiB; keep it short`,
    ])
    expect((await frozen(project.root, file(false))).plan.steps).toHaveLength(3)
  })
})

describe('values', () => {
  const runs =
    (printed: Readonly<Record<string, string>>, ran: string[] = []): RunValue =>
    async line => {
      ran.push(line)
      const text = Object.entries(printed).find(([part]) => line.includes(part))?.[1]
      return text === undefined ? { problem: `\`${line}\` ended with exit code 1` } : { text }
    }

  test('that a person gives count before those of the file, which may be texts, files, or what a command prints', async () => {
    await using project = await makeProject({ [PROMPT]: 'x', '.codex-flow/notes.txt': 'notes\n', 'mine.txt': 'x' })
    const file = fileOf([{ variables: ['given', 'text', 'notes', 'ran'] }], {
      given: { kind: 'file', path: 'none.txt' },
      text: { kind: 'text', text: 'a {{given}} b' },
      notes: { kind: 'file', path: 'notes.txt' },
      ran: { kind: 'run', run: 'print it' },
      unused: { kind: 'run', run: 'never run' },
    })
    const ran: string[] = []
    const given = new Map([
      ['given', '{{text}}'],
      ['other', 'x'],
    ])
    const { plan, notes, missing } = await frozen(project.root, file, {
      given,
      runValue: runs({ 'print it': 'printed\r\n\n' }, ran),
    })
    expect(plan.values).toEqual({
      given: { text: '{{text}}', from: 'given' },
      text: { text: 'a {{given}} b', from: 'text' },
      notes: { text: 'notes\n', from: 'file' },
      ran: { text: 'printed', from: 'run' },
    })
    expect(ran).toEqual(['print it'])
    expect(notes).toEqual(['A value was given for other, which the workflow does not use.'])
    expect(missing).toEqual([])
    expect(plan.sources.map(({ path }) => path)).toEqual([FILE, PROMPT, '.codex-flow/notes.txt'])
  })

  test('may be empty', async () => {
    await using project = await makeProject({ [PROMPT]: 'x', 'none.diff': '' })
    const vars = { a: { kind: 'file', path: 'none.diff' }, b: { kind: 'text', text: '' } } as const
    const { plan, missing } = await frozen(project.root, fileOf([{ variables: ['a', 'b'] }], vars))
    expect(plan.values).toEqual({ a: { text: '', from: 'file' }, b: { text: '', from: 'text' } })
    expect(missing).toEqual([])
  })

  test('of a command are not known where nothing is run, and are not missing', async () => {
    await using project = await makeProject({ [PROMPT]: 'x' })
    const file = fileOf([{ variables: ['ran', 'diff'] }], { ran: { kind: 'run', run: 'print it' } })
    const { plan, missing } = await frozen(project.root, file)
    expect(plan.values).toEqual({})
    expect(missing).toEqual([])
  })

  promise('O42')
  test('that nobody gives are missing, each once at its first place, with the name that was meant', async () => {
    await using project = await makeProject({ [PROMPT]: 'x' })
    const file = fileOf([{ variables: ['goal', 'other'] }, { variables: ['goal'] }])
    const { missing } = await frozen(project.root, file, { given: new Map([['gaol', 'x']]) })
    expect(missing.map(({ line, column, place, problem }) => `${line}:${column}: ${place}: ${problem}`)).toEqual([
      '12:20: workflow.steps[0].input.template: {{goal}} has no value (and in 1 more place); give --var goal=…, or one in [vars]',
      '12:21: workflow.steps[0].input.template: {{other}} has no value; give --var other=…, or one in [vars]',
    ])
    const near = await frozen(project.root, fileOf([{ variables: ['ticket'] }]), { given: new Map([['tikket', 'x']]) })
    expect(near.missing[0]?.problem).toBe(
      '{{ticket}} has no value; give --var ticket=…, or one in [vars]; the nearest is "tikket"',
    )
  })

  promise('O41')
  test.each([
    ['has the control character U+0007 in line 2, column 1; write plain text', 'a\n\u0007'],
    ['holds the secret MODEL_KEY; agents must not get secrets, so leave it out', 'my sk-123456'],
    ['is longer than 1.0 MiB; give a part of it', 'x'.repeat(1024 * 1024 + 1)],
  ])('from the file or from a command are refused where one %s', async (problem, text) => {
    await using project = await makeProject({ [PROMPT]: 'x' })
    const file = fileOf([{ variables: ['b'] }], { a: { kind: 'text', text }, b: { kind: 'run', run: 'print it' } })
    const secretIn = (value: string) => (value.includes('sk-123456') ? 'MODEL_KEY' : null)
    expect(await mistakes(project.root, file, { secretIn, runValue: runs({ 'print it': text }) })).toEqual([
      `${FILE}:900:1: vars.a: the value of a ${problem}`,
      `${FILE}:901:1: vars.b: the value of b ${problem}`,
    ])
  })

  test('whose file or command fails are mistakes, beside all others', async () => {
    await using project = await makeProject()
    const file = fileOf([{ variables: ['a', 'b'] }], {
      a: { kind: 'file', path: 'none.txt' },
      b: { kind: 'run', run: 'print it' },
    })
    expect(await mistakes(project.root, file, { runValue: runs({}) })).toEqual([
      expect.stringContaining(`${FILE}:3:10: agents.commit.prompt: there is no prompt`),
      `${FILE}:900:1: vars.a: there is no file for a value "none.txt" in .codex-flow/workflows, .codex-flow or the project's root; write it, or correct the path`,
      `${FILE}:901:1: vars.b: the value of b could not be found: \`print it\` ended with exit code 1; fix the command, or give --var b=…`,
    ])
  })

  test('diff that nobody gives is what is staged, else what has changed, and a line says so', async () => {
    await using project = await makeProject({ [PROMPT]: 'x' })
    const file = fileOf([{ variables: ['diff'] }])
    const diffIn = async (printed: Readonly<Record<string, string>>) => {
      const { plan, notes, missing } = await frozen(project.root, file, { runValue: runs(printed) })
      return [plan.values.diff?.text ?? null, ...notes, ...missing.map(({ problem }) => problem)]
    }
    expect(await diffIn({ '--cached': '-a\n+b\n', 'git ': '-c\n' })).toEqual([
      '-a\n+b',
      'You gave no value for diff, so it is the staged diff.',
    ])
    expect(await diffIn({ '--cached': '\n', 'git ': '-c\n' })).toEqual([
      '-c',
      'You gave no value for diff, so it is the diff of the work tree.',
    ])
    expect(await diffIn({ 'git ': '' })).toEqual([
      '',
      'You gave no value for diff, and nothing has changed, so it is empty.',
    ])
    expect(await diffIn({})).toEqual([
      null,
      expect.stringMatching(
        /^\{\{diff\}\} has no value, and the staged diff could not be found \(`git .* --cached` ended with exit code 1\); give --var diff=…, or one in \[vars\]$/,
      ),
    ])
  })

  test('diff comes of git: what is staged, else what has changed, and nothing without a repository', async () => {
    await using project = await makeProject({ [PROMPT]: 'x', 'a.txt': 'one\n' })
    const env = { ...process.env, GIT_CEILING_DIRECTORIES: dirname(project.root), LC_ALL: 'C' }
    const git = (...args: string[]) => execFileSync('git', args, { cwd: project.root, env, stdio: 'pipe' })
    const runValue: RunValue = async line => {
      const { status, stdout, stderr } = spawnSync('sh', ['-c', line], { cwd: project.root, env, encoding: 'utf8' })
      return status === 0 ? { text: stdout } : { problem: stderr.trim() }
    }
    const diff = async () => {
      const { plan, missing } = await frozen(project.root, fileOf([{ variables: ['diff'] }]), { runValue })
      return plan.values.diff?.text ?? missing[0]?.problem
    }
    expect(await diff()).toContain('the staged diff could not be found (fatal: not a git repository')
    git('init', '-q')
    git('add', 'a.txt')
    expect(await diff()).toMatch(/^diff --git a\/a\.txt b\/a\.txt\nnew file mode 100644\n.*\n\+one$/s)
    git('-c', 'user.name=A Person', '-c', 'user.email=person@example.org', 'commit', '-qm', 'Start')
    expect(await diff()).toBe('')
    await project.write('a.txt', 'two\n')
    expect(await diff()).toMatch(/\n-one\n\+two$/)
  })
})

test('what was read is told from what is there now', async () => {
  await using project = await makeProject({ [PROMPT]: 'x', 's.json': '{}', 'notes.txt': 'x' })
  const source = { path: join(project.root, FILE), sha256: createHash('sha256').update('').digest('hex') }
  const file = fileOf([{ schema: 's.json', variables: ['notes'] }], { notes: { kind: 'file', path: 'notes.txt' } })
  const { plan } = await frozen(project.root, file, { source })
  expect(await changedSources(plan.sources, project.root)).toEqual([])
  await project.write(PROMPT, 'y')
  await rm(join(project.root, 's.json'))
  await rm(join(project.root, 'notes.txt'))
  await project.link('notes.txt', '/etc/hostname')
  expect(await changedSources(plan.sources, project.root)).toEqual([
    { path: PROMPT, kind: 'changed' },
    { path: 's.json', kind: 'gone' },
    { path: 'notes.txt', kind: 'changed' },
  ])
})

test('a workflow that would not be kept, with its prompts, is a mistake', async () => {
  await using project = await makeProject({ [PROMPT]: Buffer.alloc(1_000_000, 'x') })
  expect((await frozen(project.root, fileOf(Array.from({ length: 16 }, () => ({}))))).plan.steps).toHaveLength(16)
  expect(await mistakes(project.root, fileOf(Array.from({ length: 17 }, () => ({}))))).toEqual([
    `${FILE}:8:1: workflow: the workflow with its prompts and values is larger than 16 MiB; make them shorter, or split it into two`,
  ])
  expect(await mistakes(project.root, fileOf(Array.from({ length: 1_000 }, () => ({}))))).toHaveLength(1)
})

test('files of more than 64 MiB are not all read, however they are named', async () => {
  await using project = await makeProject({ [PROMPT]: Buffer.alloc(1_000_000, 'x') })
  const steps = Array.from({ length: 100 }, (_, n) => ({ prompt: `${'./'.repeat(n)}${PROMPT}` }))
  expect(await mistakes(project.root, fileOf(steps))).toEqual([
    `${FILE}:8:1: workflow: the files that the workflow names are larger than 64 MiB together; make them shorter`,
  ])
})

test('500 steps are frozen within half a second of computing', async () => {
  await using project = await makeProject({ [PROMPT]: 'x', 's.json': JSON.stringify(SCHEMA) })
  const steps = Array.from({ length: 500 }, (_, n) => ({
    schema: 's.json',
    output: { path: `out/${n}.md` },
    variables: ['a'],
  }))
  const before = cpuMs()
  const { plan } = await frozen(project.root, fileOf(steps, { a: { kind: 'text', text: 'x' } }))
  const took = cpuMs() - before
  expect(plan.steps).toHaveLength(500)
  expect(took).toBeLessThan(500 * timesSlower())
})
