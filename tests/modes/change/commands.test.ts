import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { packageFile } from '../../../src/base/package.ts'
import { weakness } from '../../../src/modes/change/commands/weakness.ts'

/** Files that the change makes. */
const MADE = ['hello.txt', 'src/limit.ts', 'docs/api/limits.md']

describe('a command that may fail while the work is not done stands', () => {
  test.each([
    'npm test',
    'npm run lint && npm test',
    'npm test -- --run tests/limit.test.ts',
    'npm run build',
    'npx vitest run',
    'npx tsc --noEmit',
    'yarn',
    'yarn test',
    'CI=1 npm test',
    'env CI=1 NODE_ENV=test npm test',
    'timeout 60 npm test',
    'timeout -k 5 60 npm test',
    'time npm test',
    'nice -n 10 make check',
    'make',
    'make check',
    'make -C server test',
    'make -j4 test',
    'cargo test',
    'go test ./...',
    'go vet ./... && go build ./...',
    'python -m pytest -q',
    'python3 -m py_compile src/limit.py',
    'pytest tests/test_limit.py::test_burst',
    'mvn -q test',
    './gradlew test',
    './scripts/check.sh',
    'sh scripts/check.sh',
    'bash -n scripts/check.sh',
    'sh -c "npm test"',
    "bash -c 'npm test && npm run lint'",
    'bash -e -c "npm test; echo ok"',
    'cd server && npm test',
    'cd server; npm test',
    '(cd server && npm test)',
    '{ npm test; }',
    'npm test > /dev/null 2>&1',
    'npm test || exit 1',
    'npm test || { echo broken; exit 1; }',
    'npm test || exit 1; echo all is well',
    'if ! npm test; then exit 1; fi; echo all is well',
    'set -e; npm test; echo all is well',
    'set -euo pipefail; npm test | tail -5',
    'npm test && echo all is well',
    'echo testing; npm test',
    'mkdir -p out && node build.js out',
    'rm -rf dist && npm run build && test -f dist/index.js',
    'if npm test; then echo fine; else exit 1; fi',
    'npm test; code=$?; echo "ended with $code"; exit $code',
    'npm test; exit $?',
    'npm test; [ $? -eq 0 ]',
    'for f in src/*.js; do node --check "$f" || exit 1; done',
    'node --check src/limit.js',
    'node -c src/limit.js',
    'node src/limit.js',
    'node --test',
    `node -e "const { limit } = require('./src/limit.js'); if (limit(3) !== 3) process.exit(1)"`,
    `node -e "require('./src/limit.js')"`,
    `node -e "require('assert').equal(require('./a').b, 4)"`,
    `node --input-type=module -e "import { a } from './src/a.js'; if (a() !== 1) process.exit(1)"`,
    `node -e "process.exit(require('fs').readFileSync('hello.txt','utf8').includes('hi')?0:1)"`,
    `node -e 'JSON.parse(fs.readFileSync("package.json"))'`,
    `node -p "require('./package.json').scripts.test"`,
    `python3 -c "import app; assert app.limit(3) == 3"`,
    `python3 -c "import json; json.load(open('a.json'))"`,
    `python -c 'from app import limit; limit()'`,
    `ruby -e "require './a'; exit(1) unless A.ok?"`,
    `php -r 'require "a.php"; exit(limit() === 3 ? 0 : 1);'`,
    'php -l src/a.php',
    'perl -c a.pl',
    'grep -q hello hello.txt',
    'grep -q "the limit is" docs/api/limits.md',
    'grep -q sudo README.md',
    'grep -rn rateLimit src',
    'grep -c limit src/limit.ts',
    '! grep -q TODO src/limit.ts',
    'grep -q limit < src/limit.ts',
    'cat src/limit.ts | grep -q limit',
    'node src/limit.js | grep -q 429',
    'node src/limit.js 2>&1 | tail -1 | grep -q ok',
    'curl -sf localhost:3000 | grep -q ok',
    'find src -name "*.ts" | xargs grep -q limit',
    'git grep -q rateLimit',
    'git diff --exit-code',
    'git diff --quiet HEAD -- src/other.ts',
    'rg -q limit src',
    'jq -e .scripts.test package.json',
    'diff expected.txt actual.txt',
    'cmp a.bin b.bin',
    'sha256sum -c sums.txt',
    `awk '/limit/ {found=1} END {exit !found}' src/limit.ts`,
    '[ "$(node src/limit.js)" = 429 ]',
    'test "$(wc -l < src/limit.ts)" -gt 3',
    'out=$(node src/limit.js); [ "$out" = ok ]',
    'out=$(node src/limit.js) && test "$out" = ok',
    '[[ "$(cat hello.txt)" == *hello* ]]',
    '[[ $(node a.js) =~ ok && -f hello.txt ]]',
    '(( $(wc -l < src/limit.ts) > 3 ))',
    'n=$(wc -l < a.txt); (( n > 3 ))',
    'case "$(node a.js)" in *ok*) ;; *) exit 1;; esac',
    'test ! -e src/old.ts',
    '! test -e hello.txt',
    'until curl -sf localhost:3000; do sleep 1; done',
    'node server.js & pid=$!; trap "kill $pid" EXIT; sleep 1; curl -sf localhost:3000 | grep -q ok',
    'npm test & wait $!',
    '"$PWD/node_modules/.bin/vitest" run',
    '$(npm bin)/jest',
    '/usr/bin/env node --test',
    '/usr/bin/make check',
    './bin/tool --version',
    'docker build .',
    'terraform validate',
    'kubectl apply --dry-run=client -f a.yaml',
    'R CMD check .',
    'MSBuild.exe app.sln',
    'Rscript --vanilla tests',
    'Rscript -e x',
    './测试.sh',
    'grep -q 限流 docs/api/limits.md',
    'eval "npm test"',
    'npm test --silent # || true',
    ...[
      'cargo fmt --check',
      'cargo clippy -- -D warnings',
      'black --check .',
      'ruff check',
      'eslint .',
      'prettier --check .',
      'deno test',
      'bun test',
    ],
    ...[
      'php artisan test',
      'vendor/bin/phpunit',
      'bundle exec rspec',
      'rails test',
      'mix test',
      'swift test',
      'dotnet test',
      'gradle check',
      'mvn verify',
    ],
    ...[
      'ctest --output-on-failure',
      'cmake --build build',
      'shellcheck a.sh',
      'nginx -t',
      'xmllint --noout a.xml',
      'sqlite3 a.db "select 1"',
    ],
    ...[
      'python manage.py test',
      'python -m unittest',
      'poetry run pytest',
      'uv run pytest',
      'pnpm -r test',
      'pnpm --filter api test',
      'npm --prefix server test',
    ],
    ...[
      'yarn workspace a test',
      'nx test api',
      'turbo run test',
      'bazel test //...',
      'just test',
      'rake test',
      'tox',
      'composer test',
      'sbt test',
      'zig build test',
    ],
    ...[
      'npm exec vitest run',
      'npm exec -- tsc --noEmit',
      'pnpm exec eslint .',
      'docker compose config -q',
      'make lint test',
      'docker run --rm img npm test',
    ],
    'test -z "$(gofmt -l .)"',
    '[ -z "$(git status --porcelain)" ]',
    '! grep -rn "console.log" src',
    'npm test && echo PASS || (echo FAIL; exit 1)',
    'grep -q limit src/limit.ts && exit 0 || exit 1',
    'if grep -q limit src/limit.ts; then exit 0; else exit 1; fi',
    'node server.js & sleep 1; curl -sf localhost:3000; r=$?; kill %1; exit $r',
    'timeout 10 node server.js; [ $? -eq 124 ]',
    'diff <(node a.js) expected.txt',
    'echo hi | ./cli',
    'echo \'{"a":1}\' | node cli.js',
    'ls dist/*.js | xargs -n1 node --check',
    "find src -name '*.js' -exec node --check {} +",
    'sort -c src/limit.ts',
    'cat src/limit.ts | python3 -m json.tool > /dev/null',
    'which rg && rg -q limit src || grep -rq limit src',
    'while read f; do node --check "$f" || exit 1; done < list.txt',
    'false || npm test',
    'npm test; exit $?; true',
    'if npm test; then :; else exit 1; fi; echo ok',
    'for f in src/*.js; do [ "$f" = src/limit.js ]; done',
    `node -e "process.exit(fs.readFileSync('hello.txt').length > 3 ? 0 : 1)"`,
    `python3 -c "import sys; sys.path.insert(0, 'src'); import limit"`,
    `ruby -rjson -e "JSON.parse(File.read('a.json'))"`,
    `perl -ne 'exit 1 if /TODO/' src/limit.ts`,
  ])('%s', run => {
    expect(weakness(run, MADE)).toBeNull()
  })

  test.each([
    'exit 1',
    'false',
    'test -e never.txt',
    'cat package.json && false',
    'exit 3',
    '! true',
    'node -e "process.exit(1)"',
    `python -c "assert False"`,
  ])('one that proves nothing wrong, for it cannot succeed or is of another file: %s', run => {
    expect(weakness(run, MADE)).toBeNull()
  })
})

describe('a command that proves nothing does not stand', () => {
  test.each([
    'true',
    'true;',
    ' true ',
    'true # npm test',
    '# npm test',
    '/bin/true',
    '\\true',
    "'tr'ue",
    '"true"',
    "$'true'",
    ':',
    ': npm test',
    'echo ok',
    'echo "npm test"',
    'printf "%s" ok',
    'echo ok && echo well',
    'exit 0',
    'exit 256',
    'exit',
    'sh -c true',
    'sh -c "exit 0"',
    "bash -lc ':'",
    'sh -c "sh -c true"',
    'bash -c "npm test || true"',
    'eval true',
    'eval "npm test || true"',
    'env true',
    '/usr/bin/env true',
    'env A=1 true',
    'command true',
    'builtin true',
    'exec true',
    'nohup true',
    'timeout 5 true',
    'time true',
    'busybox true',
    'nice -n 5 true',
    '(true)',
    '{ true; }',
    '( ( : ) )',
    '! false',
    '! ! true',
    'true && true',
    'true || npm test',
    'npm test || true',
    'npm test || :',
    'npm test || exit 0',
    'npm test || echo failed',
    'npm test || sh -c true',
    '(npm test || true)',
    'npm test || (exit 0)',
    'npm test || { echo failed; true; }',
    'npm test || true || npm run lint',
    'npm test; true',
    'npm test; echo done',
    'npm test; exit 0',
    'npm test & ',
    'npm test & wait',
    'npm test & sleep 10',
    'set -e; npm test || true',
    'set -e; set +e; npm test; echo ok',
    'npm test | cat',
    'npm test 2>&1 | tail -5',
    'npm test 2>&1 | tail -n 5',
    'npm test 2>&1 | tee log.txt',
    'npm test |& head',
    'make check 2>&1 | tail',
    'npm test | sed -n 1,5p',
    'if npm test; then echo ok; fi',
    'if npm test; then echo ok; else echo not ok; fi',
    'if true; then true; fi',
    'if [ -f nothing ]; then npm test; fi',
    'while false; do npm test; done',
    'until true; do npm test; done',
    'for i in 1 2; do echo $i; done',
    'case x in y) npm;; esac; true',
    'case $X in *) true;; esac',
    'X=true; $X',
    'X=1',
    '$CHECK',
    '`echo true`',
    'true() { :; }; true',
    'npm() { :; }; npm test',
    'function npm { true; }; npm test',
    'alias npm=true; npm test',
    "trap 'exit 0' EXIT; npm test",
    '> hello.txt',
    'touch hello.txt',
    'mkdir -p src',
    'cp a b',
    'sleep 5',
    'pwd',
    'ls',
    'ls -la',
    'ls .',
    'cd .',
    'date',
    'which node',
    'command -v node',
    'type node',
    'node --version',
    'npm -v',
    'npm run',
    'npm help test',
    'git status',
    'git status --porcelain',
    'git diff',
    'git diff --stat',
    'git log -1',
    'git -C . status',
    'git add -A',
    'make -n check',
    'make -i check',
    'make --dry-run',
    'find . -name "*.ts"',
    'find src',
    'seq 3',
    'grep -q ok <<< ok',
    'echo ok | grep -q ok',
    'echo ok | cat | grep -q ok',
    'printf ok | grep ok',
    'echo true | sh',
    'sh <<< true',
    'test 1 = 1',
    'test 1 -eq 1',
    '[ 1 ]',
    '[ -n x ]',
    '[ x != y ]',
    '[ "$HOME" ]',
    '[ -n "$HOME" ]',
    '[ "$(echo ok)" = ok ]',
    'X=$(echo ok); [ "$X" = ok ]',
    '[[ 1 == 1 ]]',
    '[[ -n $HOME || -f package.json ]]',
    '(( 1 ))',
    '(( 1 + 1 ))',
    'let 1',
    'expr 1 = 1',
    'diff a.txt a.txt',
    'node -e ""',
    "node -e ''",
    'node -e "0"',
    'node -e "process.exit(0)"',
    `node -e "console.log('ok')"`,
    `node -e "console.log('all tests pass'); process.exit(0)"`,
    `node -e "// nothing"`,
    'node -p 1',
    'python3 -c pass',
    `python3 -c "print('ok')"`,
    `python -c "import sys; sys.exit(0)"`,
    'perl -e 1',
    `ruby -e "puts 'ok'"`,
    `php -r 'echo "ok";'`,
    'deno eval "console.log(1)"',
    `node -e "console.log('checked at', new Date())"`,
    `node -e "const ok = true; console.log(ok ? 'yes' : 'no')"`,
    `python3 -c "x = 1; print(f'{x} passed')"`,
    'exit 0; npm test',
    'false || true',
    'npx true',
    'npm exec true',
    'pnpm exec -- echo ok',
    'read x < hello.txt',
    'true < hello.txt',
    '< hello.txt',
    'true & wait $!',
    'npm test; kill %1',
    "sh -c 'exit $0' 0",
    'find src -exec node --check {} \\;',
    'npx jest --version',
  ])('%s', run => {
    expect(weakness(run, MADE)).toMatch(
      /^proves nothing: .+\. Name a command that fails as long as the work is not done/,
    )
  })

  test.each([
    'test -e hello.txt',
    'test -f ./hello.txt',
    'test -s hello.txt',
    '[ -f hello.txt ]',
    '[ -e "src/limit.ts" ]',
    '[ -d docs/api ]',
    '[ -r hello.txt -a -f src/limit.ts ]',
    '[[ -f hello.txt ]]',
    'test -e hello.txt && true',
    'true && test -e hello.txt',
    'test -e hello.txt && echo ok',
    'test -e hello.txt || npm test',
    'sh -c "test -e hello.txt"',
    '[ -f "$PWD/hello.txt" ]',
    'F=hello.txt; test -e $F',
    'test -e hello.*',
    'cd docs && test -f api/limits.md',
    'ls hello.txt',
    'ls src/*.ts',
    'ls docs/api',
    'ls | grep hello',
    'ls docs/api | grep -q limits.md',
    'ls -1 | grep -qx hello.txt',
    "find . | grep -q 'hello\\.txt$'",
    'git status --porcelain | grep -q hello.txt',
    'git ls-files --error-unmatch hello.txt',
    'cat hello.txt',
    'cat hello.txt > /dev/null',
    'head -n 1 hello.txt',
    'wc -l hello.txt',
    'stat hello.txt',
    'file hello.txt',
    'grep -q "" hello.txt',
    'grep -q . hello.txt',
    'grep -q ".*" hello.txt',
    'grep -q "x*" hello.txt',
    `node -e "require('fs').accessSync('hello.txt')"`,
    `node -e "process.exit(require('fs').existsSync('hello.txt') ? 0 : 1)"`,
    `python3 -c "import os; assert os.path.exists('hello.txt')"`,
    `python3 -c "from pathlib import Path; assert Path('hello.txt').exists()"`,
  ])('that a file which the change makes is there says nothing of what is in it: %s', run => {
    expect(weakness(run, MADE)).toMatch(/only looks whether .+ is there, which the change makes itself/)
  })
})

describe('what is read of nothing, chosen from what always succeeds, or hidden in shell after shell', () => {
  test.each([
    ['test -n "$(< /dev/null)"', /proves nothing/],
    ['case $(cat a) in x) echo yes;; *) echo no;; esac', /proves nothing/],
    ['eval eval eval eval eval eval npm test', /too many shells start one another/],
  ])('%s does not stand', (run, why) => {
    expect(weakness(run)).toMatch(why)
  })
})

describe('a line that may not be run', () => {
  test.each([
    ['', /is empty/],
    ['   ', /is empty/],
    ['npm test\nnpm run lint', /line breaks/],
    ['npm test\r\n', null],
    ['npm test\rtrue', /line breaks/],
    ['npm\u0000test', /control characters/],
    ['npm\u001b[31mtest', /control characters/],
    ['npm\u2028test', /line breaks/],
    ['npm test \u202etset', /reorder/],
    ['sudo npm test', /uses `sudo`/],
    ['/usr/bin/sudo npm test', /uses `sudo`/],
    ['cd a && sudo make install', /uses `sudo`/],
    ['npm test; sudo -n true', /uses `sudo`/],
    ['sh -c "sudo npm test"', /uses `sudo`/],
    ['env A=1 sudo npm test', /uses `sudo`/],
    ['echo "$(sudo cat /etc/shadow)" | grep -q root', /uses `sudo`/],
    ['ls | xargs sudo rm', /uses `sudo`/],
    ['find . -exec sudo rm {} +', /uses `sudo`/],
    ['su -c "npm test"', /uses `su`/],
    ['doas npm test', /uses `doas`/],
    ['npm test )', /cannot be read as a line for a shell/],
    ["node -e 'a", /cannot be read as a line for a shell/],
    ['if npm test; then', /cannot be read as a line for a shell/],
    [`node -e "${'a'.repeat(2_001)}"`, /2000 are the most/],
  ])('%j', (run, problem) => {
    const why = weakness(run, MADE)
    if (problem === null) expect(why).toBeNull()
    else expect(why).toMatch(problem)
  })

  test.each([
    'Check that the API returns 429 after ten requests.',
    'Verify the limiter works',
    'Run npm test and see that it passes',
    'Make sure the file exists',
    'Manually test the endpoint',
    'Open the page in a browser',
    'The tests should pass',
    'the server starts without errors',
    'npm test should pass',
    'verify that hello.txt contains hello',
    'test that the server answers',
    'check the output of the program',
    'All tests pass.',
    '运行测试，确认全部通过',
    '检查文件是否存在',
    'Überprüfe die Ausgabe',
  ])('a sentence for people is no command: %s', run => {
    expect(weakness(run, MADE)).toMatch(/^is prose, not a command/)
  })
})

describe('what the page on changes says of commands', () => {
  const [, section = ''] =
    /### Commands that prove nothing\n(.*?)\n## /s.exec(readFileSync(packageFile('docs/change.md'), 'utf8')) ?? []
  const commandsIn = (text: string) =>
    [...text.matchAll(/`([^`]+)`/g)].map(([, command = '']) => command.replaceAll('\\|', '|').replaceAll('…', 'npm'))
  const cells = section.split('\n').flatMap(line => /^\| (`.*?) \| [^|`]+.*\|$/.exec(line)?.[1] ?? [])
  const standing = section
    .split('\n')
    .filter(line => line.startsWith('What stands:'))
    .join('\n')

  test('is refused there is refused', () => {
    const refused = cells.flatMap(commandsIn).filter(command => !/^(?:trap|node -e|existsSync)$/.test(command))
    expect(refused.length).toBeGreaterThan(40)
    expect(refused.filter(command => weakness(command, ['F']) === null)).toEqual([])
  })

  test('stands there stands', () => {
    const stands = commandsIn(standing).filter(command => !/^(?:node -e|grep -q)$/.test(command))
    expect(stands.length).toBeGreaterThan(4)
    expect(
      stands.map(each => each.replace(/^npm \|/, 'npm test |')).filter(command => weakness(command, ['F']) !== null),
    ).toEqual([])
  })
})

describe('whatever a model writes', () => {
  const word = fc.constantFrom(
    ...`true : echo npm test -e -c sh bash [ ] [[ ]] ( ) { } $( \` ' " | || && & ; ;; ! if then fi else do done while for in case esac
    $? $x ${'${x:-'} } > < << <<< hello.txt exit 0 1 set -o pipefail trap eval function node -e alias =a * \\ # \u0000 限`.split(
      /\s+/,
    ),
  )

  test('never throws, is answered in time, and says the same each time', () => {
    const line = fc.oneof(
      fc.string({ maxLength: 300, unit: 'binary' }),
      fc.array(word, { maxLength: 60 }).map(words => words.join(' ')),
    )
    fc.assert(
      fc.property(line, fc.array(fc.string({ maxLength: 20 }), { maxLength: 5 }), (run, made) => {
        const why = weakness(run, made)
        expect(why === null || (why !== '' && /[.]$/.test(why))).toBe(true)
        expect(weakness(run, made)).toBe(why)
      }),
    )
  })

  test('a command that succeeds whatever happens does so in whatever it is wrapped', () => {
    const wrapped = fc.letrec<{ line: string }>(tie => ({
      line: fc.oneof(
        { maxDepth: 4 },
        fc.constantFrom('true', ':', 'echo ok', 'exit 0', 'ls', 'git status', 'node -e 0'),
        tie('line').map(line => `(${line})`),
        tie('line').map(line => `{ ${line}; }`),
        tie('line').map(line => `npm test; ${line}`),
        tie('line').map(line => `npm test || ${line}`),
        tie('line').map(line => `cd a && ${line}`),
        tie('line').map(line => `if npm test; then ${line}; fi`),
        tie('line').map(line => `npm test | cat; ${line}`),
        tie('line')
          .filter(line => !line.includes("'"))
          .map(line => `sh -c '${line}'`),
        tie('line')
          .filter(line => !line.includes("'"))
          .map(line => `eval '${line}'`),
      ),
    })).line
    fc.assert(
      fc.property(wrapped, line => {
        // `cd a && …` may fail for want of the folder; that says nothing about the work either.
        expect(weakness(line, []), line).toMatch(/^proves nothing/)
      }),
    )
  })

  test.each([
    '('.repeat(1_999),
    '$('.repeat(999),
    '{ '.repeat(999),
    '! '.repeat(999),
    `${'sh -c "'.repeat(100)}true`,
    'a && '.repeat(390).concat('true'),
    `node -e "${'print '.repeat(320)}x"`,
    `node -e "${'console.log  (  '.repeat(120)}"`,
    '"'.repeat(1_999),
    '`'.repeat(1_999),
    'if a; then '.repeat(180),
    '[[ '.repeat(600),
    '(( '.repeat(600),
    '${x:-'.repeat(330),
  ])('that is deep or long costs no time: %.20s…', run => {
    const began = performance.now()
    weakness(run, MADE)
    expect(performance.now() - began).toBeLessThan(2_000)
  })
})
