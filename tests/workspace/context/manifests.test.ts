import { expect, test } from 'vitest'
import { findCommands } from '../../../src/workspace/context/commands.ts'
import { manifestsText, readManifests } from '../../../src/workspace/context/manifests.ts'
import { cpuMs } from '../../support/cpu-time.ts'
import { workDirectoryForEach } from '../../support/work-directory.ts'

const place = workDirectoryForEach('manifests')
const project = () => ({ root: place.work, redact: (text: string) => text })

/** Writes the files, and reads what they say; commands as `kind: line`. */
async function read(files: Readonly<Record<string, string | Buffer>>) {
  for (const [path, text] of Object.entries(files)) place.write(path, text)
  const paths = Object.keys(files)
  const { manifests, notes } = await readManifests(project(), paths, new AbortController().signal)
  const commands = await findCommands(project(), paths, manifests)
  return {
    text: manifestsText(manifests),
    notes,
    manifests,
    commands: commands.map(({ kind, run }) => `${kind}: ${run}`),
  }
}

test('package.json: as it stands, with its scripts as commands of the package manager that is used', async () => {
  const scripts = {
    test: 'vitest',
    'test:watch': 'vitest --watch',
    build: 'tsc',
    lint: 'biome check',
    dev: 'vite',
    deploy: 'x',
  }
  const manifest = JSON.stringify({ name: 'shop', scripts, dependencies: { hono: '^4' } }, null, 2)
  const { text, commands } = await read({ 'package.json': manifest, 'pnpm-lock.yaml': '' })
  expect(text).toBe(`### \`package.json\`\n\n\`\`\`\n${manifest}\n\`\`\``)
  expect(commands).toEqual(['test: pnpm run test', 'build: pnpm run build', 'lint: pnpm run lint', 'run: pnpm run dev'])
})

test('a script that npm has made up, or whose name no shell should see, is no command', async () => {
  const scripts = {
    test: 'echo "Error: no test specified" && exit 1',
    'test; rm -rf ~': 'x',
    'build $(id)': 'x',
    build: 'tsc',
  }
  expect((await read({ 'package.json': JSON.stringify({ scripts }) })).commands).toEqual(['build: npm run build'])
})

test('commands of packages further down are run in their folder, after those of the top', async () => {
  const manifest = JSON.stringify({ scripts: { test: 'x' } })
  const files = { 'a b/package.json': manifest, 'packages/api/package.json': manifest, 'package.json': manifest }
  const { commands } = await read({ ...files, 'node_modules/x/package.json': manifest })
  expect(commands).toEqual(['test: npm test', 'test: cd packages/api && npm test'])
})

test('pyproject.toml: of poetry and of standard tools, and requirements', async () => {
  const standard = `
[project]
name = "shop"
requires-python = ">=3.12"
dependencies = ["fastapi>=0.100", "httpx"]
[project.optional-dependencies]
dev = ["pytest"]
[dependency-groups]
lint = ["ruff", { include-group = "dev" }]
[build-system]
build-backend = "hatchling.build"
[tool.mypy]
strict = true
`
  const one = await read({ 'pyproject.toml': standard, 'uv.lock': '' })
  expect(one.commands).toEqual([
    'test: uv run python3 -m pytest',
    'build: uv build',
    'lint: uv run ruff check .',
    'lint: uv run mypy .',
  ])
  const poetry =
    '[tool.poetry]\nname = "old"\n[tool.poetry.dependencies]\npython = "^3.11"\ndjango = { version = "^5" }\n[tool.poetry.group.dev.dependencies]\npytest = "*"\n'
  const two = await read({ 'pyproject.toml': poetry, 'poetry.lock': '' })
  expect(two.commands).toContain('test: poetry run python3 -m pytest')
  const three = await read({
    'requirements-dev.txt': '# tools\n-r base.txt\nflask==3.0 # web\n\n',
    'tests/test_app.py': '',
  })
  expect(three.commands).toEqual(['test: python3 -m unittest'])
})

test('Cargo.toml, go.mod, Gemfile and composer.json', async () => {
  const { commands } = await read({
    'Cargo.toml':
      '[package]\nname = "crab"\nedition = "2024"\n[dependencies]\nserde = { version = "1", features = ["derive"] }\ntokio = "1.40"\n[workspace]\nmembers = ["core", "cli"]\n',
    'svc/go.mod':
      'module example.org/svc\n\ngo 1.23\n\nrequire (\n\tgithub.com/a/b v1.2.3\n\tgithub.com/c/d v0.1.0 // indirect\n)\nrequire example.org/e v2.0.0\n',
    'web/Gemfile': "source 'https://rubygems.org'\nruby '3.3.0'\ngem 'rails', '~> 7.1'\ngem \"rspec-rails\"\n",
    'php/composer.json': JSON.stringify({
      name: 'a/b',
      require: { php: '>=8.2' },
      'require-dev': { 'phpunit/phpunit': '^11' },
    }),
  })
  expect(commands.filter(line => line.startsWith('test'))).toEqual([
    'test: cargo test',
    'test: cd php && vendor/bin/phpunit',
    'test: cd svc && go test ./...',
    'test: cd web && bundle exec rspec',
  ])
})

test('pom.xml, build.gradle and a C# project', async () => {
  const { commands } = await read({
    'pom.xml': `<?xml version="1.0"?><project><parent><artifactId>parent</artifactId></parent><!-- <artifactId>no</artifactId> -->
      <artifactId>shop</artifactId><version>1.0</version><modules><module>core</module></modules>
      <dependencies><dependency><groupId>org.junit</groupId><artifactId>junit</artifactId><version>5</version><scope>test</scope></dependency></dependencies></project>`,
    mvnw: '',
    'app/build.gradle.kts':
      'plugins {\n  kotlin("jvm") version "2.0"\n  id("application")\n}\ndependencies {\n  implementation("com.a:b:1.0")\n  testImplementation(libs.junit.core)\n  implementation(platform("com.c:bom:2"))\n}\n',
    'net/Shop.csproj':
      '\uFEFF<Project Sdk="Microsoft.NET.Sdk.Web">\r\n<PropertyGroup><TargetFramework>net9.0</TargetFramework></PropertyGroup><ItemGroup><PackageReference Include="xunit" Version="2.9" /></ItemGroup></Project>',
  })
  expect(commands).toEqual([
    'test: ./mvnw -q test',
    'build: ./mvnw -q compile',
    'test: cd app && gradle test',
    'test: cd net && dotnet test',
    'build: cd app && gradle assemble',
    'build: cd net && dotnet build',
  ])
})

test('targets of make and just are commands, and variables are not', async () => {
  const { commands } = await read({
    Makefile: '.PHONY: test\nCC := gcc\ntest: build\n\tcc\nbuild:\n\tcc\ninstall:\n\tcp\n%.o: %.c\ncheck-all:\n',
    justfile: 'set shell := ["bash"]\nlint *args:\n  x\nserve:\n  y\n',
  })
  expect(commands).toEqual([
    'test: make test',
    'build: make build',
    'lint: make check-all',
    'lint: just lint',
    'run: just serve',
  ])
})

test('what is no manifest but in name is said to be that, and ends nothing', async () => {
  const { text, commands, notes } = await read({
    'package.json': '{ "scripts": ',
    'a/package.json': '[]',
    'b/package.json':
      '{"scripts":{"test":7,"build":["a","b"]},"dependencies":["x"],"name":{"a":1},"engines":null,"workspaces":{}}',
    'c/package.json': `{"name":"${'x'.repeat(300_000)}"}`,
    'd/package.json': Buffer.from([0, 1]),
    'Cargo.toml': 'name = \n',
    'pom.xml': 'hello',
    'e/pyproject.toml': `a = ${'['.repeat(20_000)}`,
    'f/package.json': '{"__proto__":{"name":"x"},"dependencies":{"a\\nb":"1"},"scripts":{"constructor":"x"}}',
    'go.mod': '\n'.repeat(1_000) + 'require '.repeat(10_000),
    'g.csproj': '<Project '.repeat(20_000),
    'build.gradle': 'implementation ('.repeat(10_000),
  })
  expect(text).toContain('### `c/package.json`\n\nIt is larger than 256 KiB; nothing of it was read.')
  expect(text).toContain('### `d/package.json`\n\nIt is no text; nothing of it was read.')
  expect(commands).toContain('build: cd b && npm run build')
  expect(notes).toEqual([])
})

test('a project has as many targets as it likes, and of each maker the first hundred are looked at', async () => {
  const targets = { Makefile: 'all:\n', justfile: 'all:\n', 'Taskfile.yml': '  all:\n', Rakefile: 'task all\n' }
  const full = Object.entries(targets).map(([name, line]) => [
    name,
    line.repeat(Math.floor((255 * 1024) / line.length)),
  ])
  const { commands } = await read(Object.fromEntries(full))
  expect(commands).toEqual(['build: make all', 'build: just all', 'build: task all', 'build: rake all'])
})

test('no line of a manifest takes long, and of many large ones the first MiB is read', async () => {
  const lines = { 'build.gradle': 'implementation', Gemfile: 'gem', 'a/build.gradle': 'id' }
  const slow = Object.entries(lines).map(([name, word]) => [name, `${word}${' '.repeat(980)}x\n`.repeat(250)])
  const before = cpuMs()
  await read(Object.fromEntries(slow))
  expect(cpuMs() - before).toBeLessThan(400)
  const large = Array.from({ length: 6 }, (_, at) => [`p${at}/requirements.txt`, `${'#'.repeat(200 * 1024)}\nflask`])
  const { manifests, notes } = await read(Object.fromEntries(large))
  expect(manifests.map(({ path }) => path)).toEqual(
    ['p0', 'p1', 'p2', 'p3', 'p4'].map(each => `${each}/requirements.txt`),
  )
  expect(notes).toEqual(['1 more manifest was not read: the manifests before already have 1 MiB together.'])
})
