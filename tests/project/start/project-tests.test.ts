import { expect, test } from 'vitest'
import { findProjectTests } from '../../../src/project/start/project-tests.ts'
import { promise } from '../../support/promise.ts'
import { workDirectoryForEach } from '../../support/work-directory.ts'

const place = workDirectoryForEach('project-tests')
const script = (test: string, more = {}) => JSON.stringify({ scripts: { 'test:unit': 'x', test, ...more } })

promise('D93', '`--verify auto` takes the project’s own test command, by a stated order, and names the others')
test.each([
  [{ 'package.json': script('vitest') }, 'npm test', ['npm run test:unit']],
  [{ 'package.json': script('vitest'), 'pnpm-lock.yaml': '', Makefile: 'test:\n\tx\n' }, 'pnpm run test'],
  [{ 'package.json': script('bun test'), 'bun.lock': '' }, 'bun run test'],
  [
    { 'package.json': '{"scripts":{"test":"echo \\"Error: no test specified\\" && exit 1"}}', 'go.mod': '' },
    'go test ./...',
  ],
  [{ Makefile: 'all:\n\tx\ncheck:\n\tx\n', 'Cargo.toml': '' }, 'make check', ['cargo test']],
  [{ 'pyproject.toml': '[tool.pytest.ini_options]\n', 'uv.lock': '' }, 'uv run python3 -m pytest', []],
  [{ 'pyproject.toml': '[tool.tox]\nenvlist = ["py"]\n' }, 'tox', []],
  [{ 'requirements.txt': 'flask\n', 'tests/test_app.py': '' }, 'python3 -m unittest', []],
  [{ 'deno.json': '{"tasks":{"test":"deno test -A"}}' }, 'deno task test', []],
  [{ 'deno.jsonc': '{}' }, 'deno test', []],
  [{ 'mix.exs': '' }, 'mix test', []],
  [{ 'pom.xml': '<project/>', mvnw: '' }, './mvnw -q test', []],
  [{ 'build.gradle': '', gradlew: '' }, './gradlew test', []],
  [{ 'composer.json': '{"require-dev":{"phpunit/phpunit":"^11"}}' }, 'vendor/bin/phpunit', []],
  [{ 'README.md': '# make test', 'packages/a/package.json': script('x') }, null],
  [{ 'package.json': '{ "scripts": ' }, null],
] as [Record<string, string>, string | null, string[]?][])('%j is tested by %s', async (files, run, others) => {
  for (const [path, text] of Object.entries(files)) place.write(path, text)
  const found = await findProjectTests(place.work)
  expect(found?.run ?? null).toBe(run)
  if (others !== undefined) expect(found?.others).toEqual(others)
})
