/**
 * Plays nights: `npm run simulate -- --nights 1000 --seed 7`. One night again: `--night 7-12`, with these disturbances alone:
 * `--faults 221:kill,458:power`. `--without change,build` leaves out the nights of these modes. `--names macos` (`windows`, `exact`): all on a disk that compares names so. Bugs of the past, put back one by one: `--bugs`. simulation/README.md says more.
 */
import { existsSync, readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { characterOf, NAMINGS, seedOf } from './agent.ts'
import { BUGS } from './bugs.ts'
import type { Naming } from './disk.ts'
import type { Disturbance } from './kernel.ts'
import { type Broken, type Played, planOf, playNight } from './night.ts'
import { type Asked, Pool } from './pool.ts'
import { bundleProgram, compileProgram } from './program.ts'

const MOST_BUG_NIGHTS = 2_000
/** So many of the bugs have to be found. */
const LEAST_FOUND = 10
const SEEDS = 'tests/simulation/seeds.txt'

process.exitCode = await main()

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      nights: { type: 'string', default: '100' },
      seed: { type: 'string', default: String(Date.now() % 1_000_000) },
      night: { type: 'string' },
      faults: { type: 'string' },
      jobs: { type: 'string', default: '2' },
      bugs: { type: 'boolean', default: false },
      seeds: { type: 'boolean', default: false },
      trace: { type: 'boolean', default: false },
      without: { type: 'string', default: '' },
      names: { type: 'string' },
    },
  })
  const jobs = Number(values.jobs)
  if (values.bugs)
    return await findBugs(Number(values.nights === '100' ? MOST_BUG_NIGHTS : values.nights), values.seed, jobs)
  const text = await bundleProgram()
  if (values.night !== undefined) {
    const plan = values.faults === undefined ? planOf(values.night) : planFrom(values.faults)
    const played = await playNight(
      values.night,
      plan,
      compileProgram(text),
      values.trace ? line => console.log(line) : undefined,
    )
    console.log(
      `${values.night}: ${played.rounds} rounds, ended as ${played.outcomes.join(', ')}, after ${played.done.join(' ') || 'nothing'}; trace ${played.trace}`,
    )
    if (played.broken !== null) console.log(`BROKEN ${played.broken.promise}: ${played.broken.what}`)
    return played.broken === null ? 0 : 1
  }
  const left = values.without.split(',').filter(mode => mode !== '')
  const asked = Array.from({ length: Number(values.nights) }, (_, at) =>
    seedOf(values.seed, at, namingFrom(values.names)),
  )
    .filter(seed => !left.includes(characterOf(seed).mode))
    .map(seed => ({ seed, plan: planOf(seed) }))
  const kept = values.seeds ? keptSeeds() : []
  console.log(
    `${asked.length} nights of --seed ${values.seed}${kept.length === 0 ? '' : `, and ${kept.length} that have failed before`}`,
  )
  const began = performance.now()
  const played: Played[] = []
  await using pool = new Pool(text, jobs)
  await Promise.all(
    [...kept, ...asked].map(async each => {
      const came = await pool.play(each)
      played.push(came)
      if (came.broken !== null) await tell(came, each, pool)
    }),
  )
  const broken = played.filter(each => each.broken !== null)
  printTable(played, (performance.now() - began) / 1000)
  console.log(`${played.length - broken.length} passed, ${broken.length} failed, 0 skipped`)
  return broken.length === 0 ? 0 : 1
}

function namingFrom(given: string | undefined): Naming | undefined {
  const naming = NAMINGS.find(each => each === given)
  if (naming === undefined && given !== undefined) throw new Error(`No disk compares names as ${given}.`)
  return naming
}

/** The nights that have failed once: `<seed> <faults>`, and behind a `#` what was found. */
function keptSeeds(): Asked[] {
  if (!existsSync(SEEDS)) return []
  return readFileSync(SEEDS, 'utf8')
    .split('\n')
    .flatMap(line => {
      const [seed = '', faults] = line.replace(/#.*/, '').trim().split(/\s+/)
      return seed === '' ? [] : [{ seed, plan: faults === undefined ? planOf(seed) : planFrom(faults) }]
    })
}

function planFrom(faults: string): Disturbance[] {
  return faults
    .split(',')
    .filter(each => each !== '')
    .map(each => {
      const [at = '', kind = ''] = each.split(':')
      return { at: Number(at), kind }
    })
}

function faultsOf(plan: readonly Disturbance[]): string {
  return plan.map(({ at, kind }) => `${at}:${kind}`).join(',') || ','
}

/** Prints what broke, with the shortest list of disturbances that breaks it, as one command. */
async function tell({ broken, seed }: Played, { plan }: Asked, pool: Pool): Promise<void> {
  const shortest = await shrink({ seed, plan }, broken?.promise ?? '', pool)
  const faults = faultsOf(shortest)
  console.log(
    `BROKEN ${broken?.promise}: ${broken?.what.slice(0, 2_000)}\n  npm run simulate -- --night ${seed} --faults '${faults}'`,
  )
}

async function shrink({ seed, plan }: Asked, promise: string, pool: Pool): Promise<readonly Disturbance[]> {
  let shortest = plan
  for (let at = 0; at < shortest.length; ) {
    const shorter = shortest.toSpliced(at, 1)
    const { broken } = await pool.play({ seed, plan: shorter })
    if (broken?.promise === promise) shortest = shorter
    else at++
  }
  return shortest
}

function printTable(played: readonly Played[], seconds: number): void {
  const kinds = Map.groupBy(
    played.flatMap(each =>
      [...new Set(each.done.map(done => done.split(/[:@]/)[1] ?? ''))].map(kind => ({ kind, each })),
    ),
    ({ kind }) => kind,
  )
  const rounds = played.reduce((sum, each) => sum + each.rounds, 0)
  const hours = played.reduce((sum, each) => sum + each.ms, 0) / 3_600_000
  for (const [kind, nights] of [...kinds].sort(([, a], [, b]) => b.length - a.length))
    console.log(
      `  ${kind.padEnd(16)} ${String(nights.length).padStart(6)} nights, ${nights.filter(({ each }) => each.broken !== null).length} broken`,
    )
  const outcomes = Map.groupBy(
    played.flatMap(({ outcomes }) => outcomes),
    each => each,
  )
  console.log(`  ended as: ${[...outcomes].map(([kind, all]) => `${kind} ${all.length}`).join(', ')}`)
  console.log(
    `  ${played.length} nights of ${(rounds / Math.max(1, played.length)).toFixed(1)} rounds in ${seconds.toFixed(0)} s; on their machines they took ${hours.toFixed(0)} h`,
  )
}

/** Puts each bug back, and plays nights until one of them breaks a promise. */
async function findBugs(most: number, seed: string, jobs: number): Promise<number> {
  let found = 0
  await using sound = new Pool(await bundleProgram(), 1)
  for (const { name, kind, replacements } of BUGS) {
    const began = performance.now()
    await using pool = new Pool(await bundleProgram(replacements), jobs)
    let next = 0
    let first: { broken: Broken; asked: Asked } | null = null
    const search = async () => {
      while (first === null && next < most) {
        const night = `${seed}-${next++}`
        const asked = { seed: night, plan: planOf(night, kind) }
        const { broken } = await pool.play(asked)
        // One that breaks without the bug, too, has found another one.
        if (broken !== null && (await sound.play(asked)).broken === null) first ??= { broken, asked }
      }
    }
    await Promise.all(Array.from({ length: jobs }, search))
    const came = first as { broken: Broken; asked: Asked } | null
    if (came !== null) found++
    const nights = `${next} nights${kind === undefined ? '' : ` of the kind ${kind}`}`
    const took = `${((performance.now() - began) / 1000).toFixed(0)} s`
    console.log(`${came === null ? 'NOT FOUND' : 'found'}  ${name}: ${nights}, ${took}`)
    if (came !== null)
      console.log(
        `  breaks ${came.broken.promise}, ${came.broken.what.split('\n')[0]?.slice(0, 160)}\n  --night ${came.asked.seed} --faults '${faultsOf(came.asked.plan)}'`,
      )
  }
  console.log(`${found} of ${BUGS.length} found`)
  return found >= LEAST_FOUND ? 0 : 1
}
