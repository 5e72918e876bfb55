import { stat } from 'node:fs/promises'
import process from 'node:process'

// Loaded into a codemachine with `node --import`. It stops once the thread runs that its calls about files come from.
delete process.env.NODE_OPTIONS
await stat('.')
process.kill(process.pid, 'SIGSTOP')
