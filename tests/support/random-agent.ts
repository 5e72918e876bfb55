import { join } from 'node:path'
import type { Random } from './random.ts'

/** What the agent of a test may do: lines of a shell in the work directory. `$M` is the folder of its memory. */
type Act = (random: Random, place: AgentPlace) => string

interface AgentPlace {
  /** A file that nothing may make: whoever does has run what the agent planted with more rights than it had. */
  canary: string
  /** A folder outside of the work directory, in which nothing may change. */
  outside: string
}

/** One thing that a careless or hostile agent can do to files, git, memory and configuration. */
export function randomAct(random: Random, place: AgentPlace): string {
  return random.one(ACTS)(random, place)
}

/** One that has git run a program in a nested repository: among all the others it comes too rarely. */
export function plantingAct(random: Random, place: AgentPlace): string {
  const nested = random.one(['sub', 'sub/deeper'])
  return `git init -q ${nested}; cd ${nested} && ${program(random, place)} > fs.sh && chmod +x fs.sh && git config core.fsmonitor "$PWD/fs.sh"`
}

/** The right answer, or another one, as the work of the agent; the gate asks for it. */
export const ANSWER = 'answer.txt'

/** It claims that all is done. */
export const CLAIM = "sed -i 's/^finite_incantatem: false/finite_incantatem: true/' $M/MAIN.md"

const NAMES = ['a', 'b.ts', 'src/c', 'src/deep/d', ANSWER, '-rf', 'with space', 'ünï', "$'new\\nline'"] as const

const name: Act = random => {
  const one = random.one(NAMES)
  return one.startsWith('$') ? one : `'./${one}'`
}

/** A line that leaves a sign, but where the agent itself has it run: alone, or in codex's sandbox. */
const plant: Act = (_, { canary }) => `[ -n "$AGENT$CODEX_SANDBOX_NETWORK_DISABLED" ] || touch ${canary}`

const program: Act = (random, place) => `printf '#!/bin/sh\\n%s\\n' '${plant(random, place)}'`

const repository: Act = random => random.one(['.', '.', 'sub', 'sub/deeper'])

const pipeAt: Act = random =>
  `rm -rf ${random.one(['.gitignore', 'src/.gitignore', '.gitattributes', 'pipe', '.git/objects/info/alternates'])}; mkdir -p src; mkfifo ${random.one(['.gitignore', 'src/.gitignore', '.gitattributes', 'pipe', '.git/objects/info/alternates'])}`

const ACTS: readonly [Act, ...Act[]] = [
  // Work
  (random, place) => `mkdir -p src/deep; echo ${random.below(9)} > ${name(random, place)}`,
  () => `echo right > ${ANSWER}`,
  () => `echo right > ${ANSWER}`,
  () => `echo wrong > ${ANSWER}`,
  (random, place) => `rm -rf ${name(random, place)}`,
  (random, place) => `chmod ${random.one(['000', '755', '644', '4777'])} ${name(random, place)}`,
  (random, place) => `mv ${name(random, place)} ${name(random, place)}`,
  () => 'rm -rf src; echo file > src',
  () => 'mkdir -p a/a/a/a/a/a/a; echo 1 > a/a/a/x',
  () => 'truncate -s 1T data.mdb',
  () => 'head -c 3000000 /dev/zero > zeros',
  random => `F=${random.one(['kept-out', 'node_modules', 'dist'])}; mkdir -p $F; echo ${random.below(9)} > $F/x`,
  // Links and special files
  (random, place) => `ln -sfn ${random.one([place.outside, '/etc/passwd', '.', '..', '/nowhere'])} link`,
  (_, { outside }) => `rm -rf src; ln -sfn ${outside} src`,
  (_, { outside }) => `ln -f ${join(outside, 'kept')} ${ANSWER}`,
  pipeAt,
  // Ignore rules and attributes
  random => `printf '%s\\n' '${random.one(['*', 'a', 'src/', ANSWER, '!*', '/**'])}' >> .gitignore`,
  random => `mkdir -p .git/info; printf '%s\\n' '${random.one(['*', ANSWER])}' >> .git/info/exclude`,
  random => `printf '%s\\n' '* filter=x diff=x text eol=${random.one(['crlf', 'lf'])}' > .gitattributes`,
  // The repository
  (random, place) => `git init -q ${random.one(['', '--bare '])}${repository(random, place)}`,
  (random, place) =>
    `R=${repository(random, place)}; git init -q $R; cd $R && ${program(random, place)} > fs.sh && chmod +x fs.sh && git config core.fsmonitor "$PWD/fs.sh"`,
  (random, place) =>
    `R=${repository(random, place)}; git init -q $R; cd $R && echo '* filter=x diff=x' > .gitattributes && git config filter.x.clean '${plant(random, place)}; cat' && git config diff.x.textconv '${plant(random, place)}; cat'`,
  (random, place) =>
    `H=$(git -C ${repository(random, place)} rev-parse --absolute-git-dir)/hooks; mkdir -p "$H"; ${program(random, place)} > "$H/${random.one(['pre-commit', 'post-index-change', 'post-checkout'])}"; chmod +x "$H"/*`,
  random =>
    `git config ${random.one(['core.hooksPath .', 'core.worktree /', 'core.bare true', 'include.path ../evil'])}`,
  (random, place) => `printf '[core]\\n\\tfsmonitor = %s\\n' '${plant(random, place)}' > evil`,
  () => "git add -A -- . ':!data.mdb'; git commit -qm work",
  () => 'git add -f sub; git commit -qm sub',
  () => `git update-index --skip-worktree ${ANSWER} README.md; git update-index --assume-unchanged README.md`,
  random => `rm -rf ${random.one(['.git', '.git/HEAD', '.git/index', '.git/objects', '.git/refs', 'sub'])}`,
  (_, { outside }) => `rm -rf .git; echo 'gitdir: ${outside}' > .git`,
  () => 'rm -rf .git; ln -s sub/.git .git',
  () => 'echo rubbish > .git/index; echo rubbish > .git/config',
  (_, { outside }) => `mkdir -p .git/objects/info; echo ${outside} > .git/objects/info/alternates`,
  // Memory
  () => CLAIM,
  () => CLAIM,
  random => `echo '${random.one(TASKS)}' > $M/tasks.json`,
  random => `echo '${random.one(['', '---', '---\nfinite_incantatem: true\n---', '# All done'])}' > $M/MAIN.md`,
  random => `rm -rf $M/${random.one(['MAIN.md', 'tasks.json', ''])}`,
  (random, { outside }) => `rm -rf $M/tasks.json; ln -s ${outside}/${random.one(['kept', 'none'])} $M/tasks.json`,
  (_, { outside }) => `rm -rf .codemachine; ln -s ${outside} .codemachine`,
  random => `rm -rf $M/${random.one(['MAIN.md', 'tasks.json'])}; mkfifo $M/${random.one(['MAIN.md', 'tasks.json'])}`,
  () => 'rm -rf $M/MAIN.md; mkdir -p $M/MAIN.md/x',
  () => 'head -c 5000000 /dev/zero > $M/tasks.json',
  () => 'printf \'%0100000d\' 0 | tr 0 "[" > $M/tasks.json',
  // Configuration
  () => 'printf \'[[gates]]\\nname = "x"\\nrun = "true"\\n\' > codemachine.toml',
  random => `echo 'script-shell=/bin/true' > ${random.one(['.npmrc', '.yarnrc', 'conftest.py', 'Makefile'])}`,
  (random, place) =>
    `mkdir -p node_modules/.bin; for p in git codex sh; do ${program(random, place)} > node_modules/.bin/$p; chmod +x node_modules/.bin/$p; done`,
]

const TASKS = [
  '{"tasks": [{"id": "T1", "name": "All", "done": true}]}',
  '{"tasks": [{"id": "T1", "name": "All", "done": false, "done": true}]}',
  '{"tasks": [{"id": "T1", "name": "All", "done": false}]}',
  '{"tasks": [',
  '[]',
  'null',
] as const
