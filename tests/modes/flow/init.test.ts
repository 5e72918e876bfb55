import { spawnSync } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readdir, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { schemaAddress } from '../../../src/base/schemas.ts'
import { readFlowFile, workflowNamed } from '../../../src/modes/flow/file/file.ts'
import { freeze } from '../../../src/modes/flow/file/freeze.ts'
import { initFlow } from '../../../src/modes/flow/file/init.ts'
import { recordingFilesOf } from '../../../src/modes/flow/file/plan.ts'
import { inputHash, readOwnLine } from '../../../src/modes/flow/file/recording.ts'
import { promise } from '../../support/promise.ts'
import { unless } from '../../support/skipped.ts'

const SOURCE = new URL('../../../src/modes/flow/file/init.ts', import.meta.url).href

async function makeFolder() {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'codemachine-init-')))
  return {
    root,
    path: (...parts: string[]) => join(root, ...parts),
    read: (path: string) => readFile(join(root, path), 'utf8'),
    write: async (path: string, content: string | Buffer) => {
      await mkdir(dirname(join(root, path)), { recursive: true })
      await writeFile(join(root, path), content)
    },
    files: async () =>
      (await readdir(root, { recursive: true, withFileTypes: true }))
        .filter(entry => !entry.isDirectory())
        .map(entry => join(entry.parentPath, entry.name).slice(root.length + 1))
        .sort(),
    [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true }),
  }
}

const init = (directory: string, options: { templates?: string; force?: boolean } = {}) =>
  initFlow({ directory, templates: options.templates ?? null, force: options.force ?? false })

/** What the person is told. */
const refused = async (...args: Parameters<typeof init>) =>
  await init(...args).then(
    () => 'nothing',
    (error: unknown) => `${error}`,
  )

describe('init', () => {
  promise(
    'O40',
    '`flow init` lays down a first workflow that can be replayed, and leaves what is there; where something is in the way it writes nothing',
  )
  test('lays down both forms of a workflow, prompts, a recording, and what keeps git from the runs', async () => {
    await using folder = await makeFolder()
    const laid = await init(folder.root)
    expect(laid.map(({ path }) => path)).toEqual(await folder.files())
    expect(new Set(laid.map(({ state }) => state))).toEqual(new Set(['made']))
    const paths = laid.map(({ path }) => path)
    expect(paths).toEqual(
      expect.arrayContaining([
        '.codex-flow/flow.toml',
        '.codex-flow/workflows/commit.workflow.toml',
        '.codex-flow/runtime/.gitignore',
      ]),
    )
    for (const kind of ['agents', 'workflows', 'output-formats']) {
      const prompts = paths.filter(path => path.startsWith(`.codex-flow/prompts/templates/codemachine/${kind}/`))
      expect(prompts.length).toBeGreaterThan(2)
      for (const path of prompts) expect((await folder.read(path)).length).toBeGreaterThan(200)
    }
    for (const path of paths.filter(path => path.endsWith('.toml')))
      expect((await folder.read(path)).split('\n')[0]).toBe(`#:schema ${schemaAddress('workflow')}`)
    expect(await folder.read('.codex-flow/runtime/.gitignore')).toBe('*\n')
    expect(await folder.read('.codex-flow/flow.toml')).toContain('[[workflows.commit_flow.steps]]\n  use = "commit"\n')
  })

  test('lays down a recording whose input is that of the workflow beside it', async () => {
    await using folder = await makeFolder()
    await init(folder.root)
    const recording = await folder.read('.codex-flow/runtime/debug/1-commit-agent.json')
    const lines = recording.trimEnd().split('\n')
    const own = readOwnLine(lines[0] ?? '')
    const header = own !== null && typeof own === 'object' && 'header' in own ? own.header : null
    const workflow = await folder.read('.codex-flow/workflows/commit.workflow.toml')
    const [, written] = /template = (".*")/.exec(workflow) ?? []
    const [, path] = /prompt = "(.*?)"/.exec(workflow) ?? []
    const template: string = JSON.parse(written ?? '')
    const prompt = await folder.read(`.codex-flow/${path}`)
    const input = template.replace('{{diff}}', () => header?.values?.diff ?? '')
    expect(header).toMatchObject({ step: 'commit-message', input_sha256: inputHash(prompt, input) })
    const types = lines.slice(1).map(line => JSON.parse(line).type)
    expect(types.at(0)).toBe('thread.started')
    expect(types.at(-1)).toBe('turn.completed')
  })

  promise('O40')
  test('leaves what is there, and makes what is missing', async () => {
    await using folder = await makeFolder()
    await folder.write('.codex-flow/flow.toml', '# mine\n')
    const laid = await init(folder.root)
    expect(laid.find(({ path }) => path === '.codex-flow/flow.toml')?.state).toBe('kept')
    expect(await folder.read('.codex-flow/flow.toml')).toBe('# mine\n')
    expect(await folder.files()).toHaveLength(laid.length)
    expect(new Set((await init(folder.root)).map(({ state }) => state))).toEqual(new Set(['kept']))
  })

  test('replaces what was changed, and only that, with force', async () => {
    await using folder = await makeFolder()
    await init(folder.root)
    await folder.write('.codex-flow/flow.toml', '# mine\n')
    const replaced = (await init(folder.root, { force: true })).filter(({ state }) => state !== 'kept')
    expect(replaced).toEqual([{ path: '.codex-flow/flow.toml', state: 'replaced' }])
    expect(await folder.read('.codex-flow/flow.toml')).toContain('[workflows.commit_flow]')
  })

  test('lays down what a folder of templates holds, and nothing that its runs have left', async () => {
    await using folder = await makeFolder()
    await using templates = await makeFolder()
    await templates.write('workflows/team/night.workflow.toml', '# ours\n')
    await templates.write('prompts/templates/ours/agents/one.md', 'One.\n')
    await templates.write('runtime/.gitignore', '')
    await templates.write('runtime/debug/1-one-agent.json', '{}\n')
    await templates.write('runtime/debug/earlier/20260101_1/1-one-agent.json', '{}\n')
    await templates.write('runtime/memory/1-one-agent-result.md', 'x')
    await templates.write('.git/HEAD', 'x')
    await init(folder.root, { templates: templates.root })
    expect(await folder.files()).toEqual([
      '.codex-flow/prompts/templates/ours/agents/one.md',
      '.codex-flow/runtime/.gitignore',
      '.codex-flow/runtime/debug/1-one-agent.json',
      '.codex-flow/workflows/team/night.workflow.toml',
    ])
    expect(await folder.read('.codex-flow/runtime/.gitignore')).toBe('*\n')
  })
})

/** What a command is started through so that modes of files hold for it, for root too; null: root is free of them here. */
const boundByModes = (() => {
  const withoutRight = ['setpriv', '--bounding-set', '-dac_override']
  if (process.getuid?.() !== 0) return []
  return spawnSync('setpriv', [...withoutRight.slice(1), 'true']).status === 0 ? withoutRight : null
})()

/** As `init` does it in a process for which modes hold: what it refuses with. */
function refusedByModes(directory: string): string {
  const code = `import { initFlow } from ${JSON.stringify(SOURCE)}
    await initFlow({ directory: ${JSON.stringify(directory)}, templates: null, force: false })
      .catch(error => console.log(error.name + ': ' + error.message))`
  const [program = '', ...args] = [...(boundByModes ?? []), process.execPath, '--input-type=module', '-e', code]
  return spawnSync(program, args, { encoding: 'utf8', timeout: 30_000 }).stdout.trim()
}

promise('O40')
describe('init writes nothing', () => {
  test('where .codex-flow is a file', async () => {
    await using folder = await makeFolder()
    await folder.write('.codex-flow', 'x')
    expect(await refused(folder.root)).toBe(
      `UserError: ${folder.path('.codex-flow')} is a file; move it away: the workflow needs a folder there.`,
    )
    expect(await folder.files()).toEqual(['.codex-flow'])
  })

  test('through a link in the place of .codex-flow, or of a folder in it', async () => {
    await using folder = await makeFolder()
    await using elsewhere = await makeFolder()
    await symlink(elsewhere.root, folder.path('.codex-flow'))
    expect(await refused(folder.root, { force: true })).toBe(
      `UserError: ${folder.path('.codex-flow')} is a link; move it away: the workflow needs a folder there.`,
    )
    await rm(folder.path('.codex-flow'))
    await mkdir(folder.path('.codex-flow'))
    await symlink(elsewhere.root, folder.path('.codex-flow/workflows'))
    expect(await refused(folder.root)).toContain('.codex-flow/workflows is a link;')
    expect(await elsewhere.files()).toEqual([])
    expect(await folder.files()).toEqual(['.codex-flow/workflows'])
  })

  test('where a folder or, with force, a link stands in the place of a file', async () => {
    await using folder = await makeFolder()
    await folder.write('elsewhere.toml', 'mine')
    await folder.write('.codex-flow/flow.toml/x', 'x')
    expect(await refused(folder.root)).toBe(
      `UserError: ${folder.path('.codex-flow/flow.toml')} is a folder; move it away: the workflow needs a file there.`,
    )
    expect(await folder.files()).toEqual(['.codex-flow/flow.toml/x', 'elsewhere.toml'])
    await rm(folder.path('.codex-flow/flow.toml'), { recursive: true })
    await symlink(folder.path('elsewhere.toml'), folder.path('.codex-flow/flow.toml'))
    expect(await refused(folder.root, { force: true })).toBe(
      `UserError: ${folder.path('.codex-flow/flow.toml')} is a link, which codemachine does not replace; remove it, or leave --force out.`,
    )
    expect((await init(folder.root)).find(({ path }) => path === '.codex-flow/flow.toml')?.state).toBe('kept')
    expect(await folder.read('elsewhere.toml')).toBe('mine')
  })

  test.skipIf(boundByModes === null)(
    `where .codex-flow is read-only, and goes on once it is not${unless(boundByModes !== null, 'root is free of modes here')}`,
    async () => {
      await using folder = await makeFolder()
      await folder.write('.codex-flow/flow.toml', '# mine\n')
      await chmod(folder.path('.codex-flow'), 0o555)
      expect(refusedByModes(folder.root)).toBe(
        `UserError: ${folder.path('.codex-flow')} cannot be written (EACCES); make it writable, and run init again.`,
      )
      expect(await folder.files()).toEqual(['.codex-flow/flow.toml'])
      await chmod(folder.path('.codex-flow'), 0o755)
      expect(refusedByModes(folder.root)).toBe('')
      expect(await folder.files()).toHaveLength((await init(folder.root)).length)
    },
  )

  test('where the folder is not there', async () => {
    await using folder = await makeFolder()
    expect(await refused(folder.path('none'))).toBe(
      `UserError: ${folder.path('none')} cannot be used as the work directory: there is no such directory.`,
    )
  })

  test('where the templates are not there, no workflow, a link, no text, or too large', async () => {
    await using folder = await makeFolder()
    await using templates = await makeFolder()
    const why = () => refused(folder.root, { templates: templates.root })
    expect(await refused(folder.root, { templates: templates.path('none') })).toBe(
      `UserError: The templates in ${templates.path('none')} cannot be read: there is no such folder.`,
    )
    await templates.write('prompts/one.md', 'One.\n')
    expect(await why()).toBe(
      `UserError: ${templates.root} contains no workflow; put a flow.toml or a workflows/<name>.workflow.toml into it.`,
    )
    await templates.write('flow.toml', '# ours\n')
    await symlink('/etc/hostname', templates.path('prompts/two.md'))
    expect(await why()).toContain('two.md cannot be used: it is a link; write a file in its place.')
    await rm(templates.path('prompts/two.md'))
    await templates.write('prompts/two.md', Buffer.from([0xff, 0xfe, 0x00]))
    expect(await why()).toContain('two.md cannot be used: it is not text (UTF-8); a template is a text file.')
    await templates.write('prompts/two.md', Buffer.alloc(1024 * 1024 + 1, 'x'))
    expect(await why()).toContain('two.md cannot be used: it is longer than 1.0 MiB; make it shorter.')
    expect(await folder.files()).toEqual([])
  })
})

/** A workflow file as it lies there, read and frozen as for a replay. */
async function freezeFile(root: string, path: string) {
  const text = await readFile(join(root, path), 'utf8')
  const read = readFlowFile(text, path, { refusedArgument: () => null })
  if ('mistakes' in read) throw new Error(JSON.stringify(read.mistakes))
  return await freeze(read.file, workflowNamed(read.file, null), {
    root,
    source: { path: join(root, path), sha256: 'f'.repeat(64) },
    given: new Map(),
    runValue: null,
    secretIn: () => null,
    signal: new AbortController().signal,
  })
}

test.each(['.codex-flow/flow.toml', '.codex-flow/workflows/commit.workflow.toml'])(
  '%s of init has no mistake, and its recording is found',
  async path => {
    await using folder = await makeFolder()
    await init(folder.root)
    const frozen = await freezeFile(folder.root, path)
    if ('mistakes' in frozen) throw new Error(JSON.stringify(frozen.mistakes))
    const [step] = frozen.plan.steps
    expect(frozen).toMatchObject({ missing: [], notes: [], plan: { name: 'commit_flow', file: path } })
    expect(step).toMatchObject({
      work: { agent: 'commit', engine: 'codex', model: 'gpt-5' },
      output: { kind: 'file', path: 'COMMIT_MESSAGE.md', append: false },
    })
    expect(step === undefined ? [] : recordingFilesOf(step)).toContain('1-commit-agent.json')
  },
)
