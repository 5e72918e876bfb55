import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import { expect, it } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import { loadPrompt, packageFile, packageRoot } from '../../src/base/package.ts'

it('the program finds its own files from its sources', () => {
  expect(packageRoot).toBe(fileURLToPath(new URL('../..', import.meta.url)).replace(/[/\\]$/, ''))
  expect(packageFile('package.json')).toBe(join(packageRoot, 'package.json'))
  expect(loadPrompt('goal')).toContain('{{main}}')
})

it('the program finds its own files from a bundle that is installed inside another package', async () => {
  const project = await realpath(await mkdtemp(join(tmpdir(), 'project-')))
  const installed = join(project, 'node_modules', packageJson.name)
  await mkdir(join(installed, 'dist'), { recursive: true })
  await mkdir(join(installed, 'prompts'))
  await writeFile(join(project, 'package.json'), '{ "name": "somebody-elses" }')
  await writeFile(join(installed, 'package.json'), JSON.stringify({ name: packageJson.name, type: 'module' }))
  await writeFile(join(installed, 'dist/package.json'), '{ "type": "module" }')
  await writeFile(join(installed, 'prompts/goal.md'), 'the installed prompt')
  await build({
    stdin: {
      contents: `import { loadPrompt, packageRoot } from './src/base/package.ts'
console.log(JSON.stringify([packageRoot, loadPrompt('goal')]))`,
      resolveDir: packageRoot,
    },
    outfile: join(installed, 'dist/bin.js'),
    bundle: true,
    format: 'esm',
    platform: 'node',
  })
  const { stdout } = await promisify(execFile)(process.execPath, [join(installed, 'dist/bin.js')], { cwd: tmpdir() })
  expect(JSON.parse(stdout)).toEqual([installed, 'the installed prompt'])
  await rm(project, { recursive: true })
})
