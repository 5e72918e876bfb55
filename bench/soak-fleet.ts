import { parseArgs } from 'node:util'
import { playNight } from '../tests/support/fleet-night.ts'

/** `npm run soak fleet`: a night of 1,000 sessions on four workers, of which 200 faults are made; prints what came of it, and exits with 1 if anything did that should not. */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    sessions: { type: 'string', default: '1000' },
    faults: { type: 'string', default: '200' },
    real: { type: 'string', default: '50' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
})
if (positionals.join() !== 'fleet') {
  process.stderr.write('There is one: npm run soak fleet -- [--sessions 1000] [--faults 200] [--real 50] [--seed n]\n')
  process.exit(2)
}
const [sessions, faults, real, seed] = [values.sessions, values.faults, values.real, values.seed].map(Number)
if (sessions === undefined || faults === undefined || real === undefined || seed === undefined)
  throw new Error('unreachable')
const HOURS = 60 * 60_000
process.stdout.write(`${sessions} sessions and ${real} with the real codex, ${faults} faults, --seed ${seed}\n`)
const night = await playNight({
  sessions: sessions - real,
  real,
  faults,
  seed,
  workers: 4,
  slots: 2,
  repositories: 8,
  turnMs: 50,
  boundMs: 3 * HOURS,
  say: line => void process.stdout.write(`${(performance.now() / 1000).toFixed(1).padStart(7)} ${line}\n`),
})
const { problems, tookMs, takeOvers, events, given } = night
process.stdout.write(
  `\n${Math.round(tookMs / 1000)} s, ${takeOvers} take-overs, ${events} events; ${Object.entries(given)
    .map(([fault, times]) => `${fault} ${times}`)
    .join(', ')}\n`,
)
for (const problem of problems) process.stdout.write(`${problem}\n`)
process.stdout.write(
  problems.length === 0 ? 'Every session was done once, and nothing is left.\n' : `${problems.length} problems.\n`,
)
process.exit(problems.length === 0 ? 0 : 1)
