/*
 * The sections of the page. Everything is drawn from the files of run directories (docs/reference/run-directory.md), which stand in the
 * element #data. A file may be missing, and one from elsewhere may hold anything: a section that cannot be drawn says so, and the
 * others stay.
 */
const COLORS = ['var(--c0)', 'var(--c1)', 'var(--c2)', 'var(--c3)', 'var(--c4)', 'var(--c5)', 'var(--c6)', 'var(--c7)'];
const KINDS = ['data wait', 'gather', 'forward', 'loss', 'backward', 'prepare', 'reduce', 'optimizer', 'callbacks', 'communication',
    'idle', 'overhead'];
const view = { x: 'epoch', log: false };
let data = JSON.parse(document.getElementById('data').textContent);

/* ---- Reading the files ---- */

function object(value) {
    return value && typeof value === 'object' && !Array.isArray(value) ? value : {};
}

/* A list; of a long one the page has some of the values, and `of` says how many there were. */
function list(value) {
    const values = Array.isArray(value) ? value : Array.isArray(object(value).values) ? value.values : [];
    const of = Array.isArray(value) || !is(object(value).of) ? values.length : value.of;
    const at = k => of === values.length || values.length < 2 ? k : Math.round(k * (of - 1) / (values.length - 1));
    return { values, of, at };
}

function text(value) {
    return typeof value === 'string' ? value : value === null || value === undefined ? '' : typeof value === 'object'
        ? JSON.stringify(value) : String(value);
}

function colorOfKind(kind) {
    return KINDS.includes(kind) ? 'var(--k-' + kind.replace(' ', '-') + ')' : 'var(--c7)';
}

function nameOf(r) {
    return text(r.name).replace(/\/+$/, '') || 'run';
}

function titleOf(r) {
    const run = object(r.run), path = text(object(run.data).path);
    return text(run.title) || 'Training on ' + (path.split('/').filter(Boolean).pop() || nameOf(r));
}

/* The words of the command, quoted for a shell. */
function commandOf(run) {
    const words = list(run.command).values.map(text);
    return ['batchwise', ...words].map(w => /^[\w@%+=:,./-]+$/.test(w) ? w : "'" + w.replace(/'/g, "'\\''") + "'").join(' ');
}

/* The curves of a run: { name: { epochs: [[epoch, step, value]], steps: likewise } }. A step's epoch is fractional. */
function curvesOf(r) {
    const history = object(r.history), steps = object(r.steps), ends = list(steps.epoch_end), made = {};
    const total = object(object(r.run).result).steps, epochs = Math.max(0, ...Object.values(history).map(c => list(c).of));
    const end = e => {
        const k = ends.values.findIndex((_, i) => ends.at(i) >= e);
        return k >= 0 && is(ends.values[k]) ? ends.values[k] : is(total) && epochs ? total * (e + 1) / epochs : e + 1;
    };
    const curve = name => made[name] || (made[name] = { epochs: [], steps: [] });
    for (const [name, column] of Object.entries(history)) {
        const c = list(column);
        c.values.forEach((value, k) => is(value) && curve(name).epochs.push([c.at(k) + 1, end(c.at(k)), value]));
    }
    const at = list(steps.step).values, epoch = list(steps.epoch).values;
    for (const [name, column] of Object.entries(steps)) {
        if (!['step', 'epoch', 'epoch_end'].includes(name)) {
            list(column).values.forEach((value, k) => {
                if (is(value) && is(at[k]) && is(epoch[k])) {
                    const first = epoch[k] > 0 ? end(epoch[k] - 1) : 0, last = Math.max(end(epoch[k]), at[k], first + 1);
                    curve(name).steps.push([epoch[k] + (at[k] - first) / (last - first), at[k], value]);
                }
            });
        }
    }
    return made;
}

function pointsOf(points) {
    return points.map(p => [view.x === 'epoch' ? p[0] : p[1], p[2]]);
}

/* ---- Head and results ---- */

function endOf(result) {
    return { 'early stopping': 'ended by early stopping', interrupted: 'interrupted', failed: 'failed' }[result.stopped] || '';
}

function aboutOf(r) {
    const run = object(r.run), result = object(run.result), samples = object(run.data).samples;
    const parts = [text(run.about)];
    if (is(result.epochs)) {
        parts.push(result.epochs + (is(run.epochs) ? ' of ' + run.epochs : '') + ' epochs');
    }
    if (is(samples) && !run.about) {
        parts.push(number(samples) + ' samples in the data');
    }
    return [...parts, endOf(result)].filter(Boolean).join('; ');
}

function sentence(words) {
    return words ? words[0].toUpperCase() + words.slice(1) + '.' : '';
}

/* Accuracies are shares, and are shown as such. */
function valueText(name, value) {
    return /accuracy|precision|recall/.test(name) && is(value) && value >= 0 && value <= 1 ? percent(value, 2) : number(value);
}

function factsOf(r) {
    const run = object(r.run), result = object(run.result), last = object(result.last), ledger = object(r.ledger);
    const facts = [], names = Object.keys(last).filter(n => n !== 'learning_rate' && is(last[n]));
    const shown = names.filter(n => n.startsWith('val_')).concat(names.filter(n => !n.startsWith('val_')));
    for (const name of shown.filter(n => !/loss$/.test(n)).slice(0, 2).concat(shown.filter(n => /^(val_)?loss$/.test(n)).slice(0, 1))) {
        facts.push([valueText(name, last[name]), name.startsWith('val_') ? name.slice(4) + ', validation samples' : name + ', training samples']);
    }
    facts.push([duration(result.seconds), 'training time, ' + number(result.steps) + ' steps']);
    facts.push([number(result.samples_per_s, 3), 'samples per second']);
    const used = list(ledger.utilisation).values.filter(is);
    if (used.length) {
        facts.push([percent(used.reduce((a, b) => a + b, 0) / used.length, 0), 'utilisation of ' + used.length + ' worker' + (used.length > 1 ? 's' : '')]);
    }
    facts.push([result.peak_bytes > 0 ? bytes(result.peak_bytes) : '–', 'peak memory, planned ' + bytes(object(run.plan).planned_bytes)]);
    return el('dl', { class: 'facts' }, facts.map(([value, name]) => el('div', {}, el('dt', {}, name), el('dd', {}, value))));
}

function omittedOf(r) {
    const names = list(r.omitted).values.map(text);
    return names.length ? el('p', { class: 'soft' }, 'Too large for this page, and not shown: ' + names.join(', ') + '.') : null;
}

function headSection(runs) {
    if (runs.length > 1) {
        return [el('h1', {}, runs.length + ' runs compared'), el('p', { class: 'soft' }, runs.map(nameOf).join(', '))];
    }
    const r = runs[0], failure = text(object(object(r.run).result).failure);
    return [el('h1', {}, titleOf(r)),
        data.live ? el('p', { class: 'live' + (data.over ? ' over' : ''), id: 'live' }, data.over ? 'The training is over.' : 'Live') : null,
        el('p', { class: 'soft' }, aboutOf(r)), omittedOf(r), failure ? el('p', { role: 'alert' }, failure) : null, object(r.run).result ? factsOf(r) : null];
}

/* ---- Findings ---- */

function findingsSection(runs) {
    const findings = runs.length === 1 ? list(runs[0].findings).values : [];
    if (!findings.length) {
        return null;
    }
    return section('Findings', el('ul', { class: 'findings' }, findings.map(object).map(f => el('li',
        { class: ['error', 'warning'].includes(f.severity) ? f.severity : 'note' },
        el('b', {}, text(f.id)), ' ', el('span', { class: 'soft' }, text(f.severity)),
        el('p', {}, text(f.evidence)), f.reason ? el('p', { class: 'soft' }, text(f.reason)) : null, f.fix ? el('p', {}, el('code', {}, text(f.fix))) : null))));
}

/* ---- Curves ---- */

/* One chart for each column and its validation; the runs of a comparison have a colour each, and validation is dashed. */
function learningSection(runs) {
    const all = runs.map(curvesOf), several = runs.length > 1, names = new Set(), only = ['samples_per_s', 'learning_rate', 'noise_scale'];
    all.forEach(curves => Object.keys(curves).forEach(n => names.add(n.replace(/^val_/, ''))));
    const ordered = [...names].filter(n => !only.includes(n)).sort((a, b) => (b === 'loss') - (a === 'loss') || (a < b ? -1 : 1))
        .concat(only.filter(n => names.has(n))).slice(0, 24);
    if (!ordered.length) {
        return null;
    }
    const titles = { samples_per_s: 'Samples per second', learning_rate: 'Learning rate', noise_scale: 'Gradient noise scale' };
    const seriesOf = name => runs.flatMap((r, k) => {
        const made = [], own = object(all[k][name]), checked = object(all[k]['val_' + name]), color = several ? COLORS[k % 8] : COLORS[0];
        const by = several ? nameOf(r) : '';
        const fine = list(own.steps).values, coarse = list(own.epochs).values;
        if (fine.length && coarse.length) {
            made.push({ name: 'by step', color, faint: true, points: pointsOf(fine) });
        }
        const main = coarse.length ? coarse : fine;
        if (main.length) {
            made.push({ name: by || (titles[name] ? titles[name] : 'training'), color, points: pointsOf(main) });
        }
        if (list(checked.epochs).values.length) {
            made.push({ name: by ? by + ', validation' : 'validation', color: several ? color : COLORS[1], dashed: several,
                points: pointsOf(checked.epochs) });
        }
        return made;
    });
    const extent = () => { /* one axis for all, also for what was measured in a part of the training */
        const xs = endsOf(ordered.flatMap(seriesOf));
        return xs.length ? [Math.min(...xs), Math.max(...xs)] : [];
    };
    const charts = ordered.map(name => {
        const it = chart(titles[name] || name, () => ({ series: seriesOf(name), x: view.x, between: extent(),
            log: view.log && /loss$|_rate$|_scale$/.test(name) }));
        observer.observe(it.figure);
        return it;
    });
    learningSection.refresh = updated => {
        const present = new Set(updated.flatMap(r => Object.keys(curvesOf(r)).map(n => n.replace(/^val_/, ''))));
        if (updated.length !== runs.length || [...present].some(n => !names.has(n))) {
            return false; /* there is another curve now */
        }
        updated.forEach((r, k) => {
            runs[k] = r;
            all[k] = curvesOf(r);
        });
        charts.forEach(c => c.draw());
        return true;
    };
    const redraw = () => charts.forEach(c => c.draw());
    const choice = x => el('label', {}, el('input', { type: 'radio', name: 'x', value: x, checked: view.x === x, change: () => {
        view.x = x;
        redraw();
    } }), 'by ' + x);
    const made = section(null, el('div', { class: 'bar' }, el('h2', {}, 'Learning'),
        el('span', { class: 'switch', role: 'radiogroup', 'aria-label': 'Horizontal axis' }, choice('epoch'), choice('step')),
        el('label', {}, el('input', { type: 'checkbox', change: e => {
            view.log = e.target.checked;
            redraw();
        } }), ' log scale')),
        el('div', { class: 'charts' }, charts.map(c => c.figure)));
    if (!several) {
        const epochColumns = () => Object.keys(all[0]).filter(n => all[0][n].epochs.length);
        made.append(tableOf('The same as a table', 'epochs', ['epoch', ...epochColumns()], () => {
            const columns = epochColumns(), longest = Math.max(0, ...columns.map(n => all[0][n].epochs.length));
            return Array.from({ length: longest }, (_, k) => [number((all[0][columns[0]].epochs[k] || [])[0], 6),
                ...columns.map(n => number((all[0][n].epochs[k] || [])[2]))]);
        }));
    }
    return made;
}

/* ---- Predictions ---- */

function matrixOf(evaluation, classes) {
    const rows = list(evaluation.confusion).values.map(r => list(r).values);
    const side = (values, k) => el('td', { class: 'side' }, is(values[k]) ? (100 * values[k]).toFixed(1) : '–');
    const recall = list(evaluation.recall_by_class).values, precision = list(evaluation.precision_by_class).values;
    return [el('p', { class: 'soft', id: 'matrix' }, 'A row for each true class, a column for each predicted one; recall and precision in percent.'),
        el('div', { class: 'wide', tabindex: 0, role: 'region', 'aria-label': 'Confusion matrix' }, el('table', { class: 'matrix', 'aria-describedby': 'matrix' },
        el('thead', {}, el('tr', {}, el('td'), classes.map(c => el('th', { scope: 'col' }, c)), el('th', { scope: 'col' }, 'recall'))),
        el('tbody', {}, rows.map((row, i) => {
            const all = row.reduce((a, b) => a + (is(b) ? b : 0), 0);
            return el('tr', {}, el('th', { scope: 'row' }, classes[i]), row.map((count, j) => {
                const share = all > 0 && is(count) ? count / all : 0, depth = !count ? 0.05 : i === j ? 0.1 + 0.38 * share : 0.2 + 0.45 * share;
                return el('td', { style: 'background:rgba(var(--' + (i === j || !count ? 'good' : 'bad') + '),' + depth.toFixed(2) + ')',
                    title: count ? number(count) + ' of ' + number(all) + ' samples of ' + classes[i] + ' taken for ' + classes[j] : null },
                count ? number(count, 9) : '');
            }), side(recall, i));
        }), el('tr', {}, el('th', { scope: 'row' }, 'precision'), classes.map((_, j) => side(precision, j)), el('td')))))];
}

/* A matrix of many classes would be unreadable, so the run names the most frequent confusions only. */
function confusionsOf(evaluation) {
    return table(['true class', 'taken for', 'samples'], list(evaluation.confusions).values.map(object).map(c =>
        [text(c.true_class), el('td', { class: 'left' }, text(c.predicted_class)), number(c.samples, 12)]), 'The most frequent confusions');
}

/* Bytes of an image, row by row with one, three or four channels, on a canvas. */
function pictureOf(image) {
    const { width, height, channels } = image, raw = atob(text(image.bytes));
    if (!(width > 0 && height > 0 && width <= 512 && height <= 512 && [1, 3, 4].includes(channels) && raw.length === width * height * channels)) {
        return null;
    }
    const canvas = el('canvas', { width, height, role: 'img' }), context = canvas.getContext('2d'), pixels = context.createImageData(width, height);
    for (let k = 0; k < width * height; k++) {
        for (let c = 0; c < 3; c++) {
            pixels.data[4 * k + c] = raw.charCodeAt(k * channels + (channels === 1 ? 0 : c));
        }
        pixels.data[4 * k + 3] = channels === 4 ? raw.charCodeAt(4 * k + 3) : 255;
    }
    context.putImageData(pixels, 0, 0);
    return canvas;
}

function worstOf(evaluation) {
    const worst = list(evaluation.worst).values.map(object), classed = worst.some(w => w.predicted_class !== undefined);
    const verdict = w => classed ? text(w.true_class) + (w.true_class === w.predicted_class ? ' found' : ' taken for ' + text(w.predicted_class))
        : number(w.true) + ', predicted ' + number(w.predicted);
    const place = w => text(w.file) || 'sample ' + number(w.sample, 12), brief = w => place(w).split('/').slice(-2).join('/');
    const pictures = worst.map(w => w.image ? pictureOf(object(w.image)) : null);
    if (!worst.length) {
        return [];
    }
    const note = classed ? 'The samples with the highest loss: the model gave their true class the lowest probability.' : 'The samples with the largest error.';
    if (pictures.some(Boolean)) {
        return [el('h3', {}, 'Worst samples'), el('p', { class: 'soft' }, note), el('ul', { class: 'samples' }, worst.map((w, k) => {
            if (pictures[k]) {
                pictures[k].setAttribute('aria-label', place(w) + ': ' + verdict(w));
            }
            return el('li', {}, pictures[k], el('b', {}, verdict(w)), el('br'), el('span', { class: 'soft' },
                classed ? 'true class ' + percent(w.probability) : 'error ' + number(w.error), el('br'), el('span', { title: place(w) }, brief(w))));
        }))];
    }
    return [el('h3', {}, 'Worst samples'), el('p', { class: 'soft' }, note),
        classed ? table(['sample', 'true class', 'predicted', 'probability of the true class', 'loss'],
            worst.map(w => [place(w), text(w.true_class), text(w.predicted_class), percent(w.probability), number(w.loss)]))
            : table(['sample', 'true', 'predicted', 'error'], worst.map(w => [place(w), number(w.true), number(w.predicted), number(w.error)]))];
}

function predictionSection(runs) {
    const evaluation = runs.length === 1 ? object(runs[0].evaluation) : {}, worst = worstOf(evaluation);
    const rows = list(evaluation.confusion).values.length, pairs = list(evaluation.confusions).values.length;
    if (!rows && !pairs && !worst.length) {
        return null;
    }
    const classes = list(evaluation.classes).values.map(text);
    return section('Predictions', el('p', { class: 'soft' }, number(evaluation.samples, 12) + ' validation samples, with the model at the end of the training.'),
        rows ? matrixOf(evaluation, classes) : pairs ? confusionsOf(evaluation) : null, worst);
}

/* ---- Where the time went ---- */

/* A bar of shares; `parts` are [name, amount, colour, text]. */
function stack(label, parts) {
    const all = parts.reduce((a, p) => a + p[1], 0);
    return el('div', { class: 'stack', role: 'img', 'aria-label': label + ': ' + parts.map(p => p[0] + ' ' + percent(p[1] / all)).join(', ') },
        parts.map(p => el('span', { style: 'width:' + (100 * p[1] / all).toFixed(3) + '%;background:' + p[2], title: p[0] + ' ' + p[3] })));
}

function partsOf(parts) {
    return KINDS.filter(k => parts[k] > 0).map(k => [k, parts[k], colorOfKind(k), duration(parts[k] * 1e-6)]);
}

/* One traced step: a row for each worker, a block for each part. */
function timelineOf(ledger) {
    const t = object(ledger.timeline), spans = list(t.spans).values.map(object), events = list(t.events).values.map(e => list(e).values);
    if (!events.length || !(t.step_us > 0)) {
        return null;
    }
    const workers = 1 + Math.max(...events.map(e => is(e[0]) && e[0] < 1024 ? e[0] : 0)), tip = el('div', { class: 'tip', hidden: true });
    const plot = el('div', { class: 'plot' }), ROW = 26, left = 66, height = workers * ROW + 26;
    const it = { figure: el('figure', {}, el('figcaption', {}, 'One step: ' + duration(t.step_us * 1e-6)), plot) };
    it.draw = () => {
        const width = Math.max(220, Math.floor(plot.clientWidth || 900)), px = us => left + (width - left - 4) * us / t.step_us;
        const drawing = svg('svg', { width, height, role: 'img', 'aria-label': 'Timeline of one step: ' + events.length + ' parts on ' + workers + ' workers' });
        for (let w = 0; w < workers; w++) {
            drawing.append(svg('text', { x: 0, y: w * ROW + 16 }, 'worker ' + w),
                svg('rect', { x: left, y: w * ROW + 2, width: width - left - 4, height: ROW - 6, rx: 2, style: 'fill:var(--grid)' }));
        }
        for (const us of ticks(0, t.step_us, width / 110)) {
            drawing.append(svg('text', { x: px(us), y: height - 4, 'text-anchor': us === 0 ? 'start' : 'middle' }, duration(us * 1e-6)));
        }
        for (const [worker, span, begin, us] of events) {
            const s = object(spans[span]), kind = text(s.kind);
            if (is(worker) && is(begin) && is(us) && worker < 1024) {
                drawing.append(svg('rect', { x: px(begin).toFixed(2), y: worker * ROW + 2, height: ROW - 6, style: 'fill:' + colorOfKind(kind),
                    width: Math.max(0.5, px(begin + us) - px(begin) - 0.3).toFixed(2), pointerenter: e => {
                        tip.replaceChildren(el('b', {}, (text(s.layer) ? text(s.layer) + ', ' : '') + kind), duration(us * 1e-6) + ' from ' + duration(begin * 1e-6));
                        tip.hidden = false;
                        const at = e.clientX - plot.getBoundingClientRect().left + 12;
                        tip.style.left = Math.max(0, Math.min(at, width - tip.offsetWidth)) + 'px';
                        tip.style.top = (worker + 1) * ROW + 'px';
                    } }));
            }
        }
        drawing.addEventListener('pointerleave', () => {
            tip.hidden = true;
        });
        plot.replaceChildren(drawing, tip);
    };
    chartsOfPage.push(it);
    observer.observe(it.figure);
    return [it.figure, t.dropped > 0 ? el('p', { class: 'soft' }, number(t.dropped) + ' shorter parts are not drawn.') : null];
}

function timeSection(runs) {
    const ledger = runs.length === 1 ? object(runs[0].ledger) : {}, parts = partsOf(object(ledger.parts)), all = parts.reduce((a, p) => a + p[1], 0);
    if (!parts.length) {
        return null;
    }
    const used = list(ledger.utilisation).values, ops = list(ledger.ops).values.map(object).filter(o => is(o.us)).sort((a, b) => b.us - a.us);
    const gaps = list(ledger.gaps).values.map(object);
    return section('Time', el('p', {}, 'A mean step took ' + duration(ledger.step_us * 1e-6) + ' for ' + number(is(ledger.samples_per_step) ? ledger.samples_per_step : ledger.batch, 4) + ' samples (' +
            number(ledger.timed_steps, 9) + ' of ' + number(ledger.steps, 9) + ' steps were timed).'),
        list(ledger.by_worker).values.map((w, k) => el('div', { class: 'row' }, el('span', {}, 'worker ' + k),
            stack('Worker ' + k, partsOf(object(w))), el('span', { title: 'utilisation' }, percent(used[k], 0)))),
        el('div', { class: 'charts', style: 'margin-top:18px' },
            table(['part', 'per step', 'share'], parts.map(p => [el('span', {}, el('span', { class: 'box', style: 'background:' + p[2] }), p[0]), p[3], percent(p[1] / all)]),
                'Parts of a step, all workers together'),
            gaps.length ? table(['worker', 'idle for', 'while waiting for'], gaps.map(g => ['worker ' + text(g.worker), duration(g.us * 1e-6), el('td', { class: 'left' }, text(g.waits_for) || 'nothing that was timed')]),
                'The longest gaps') : null),
        el('h3', {}, 'Timeline'), timelineOf(ledger) || el('p', { class: 'soft' }, data.live && !data.over ? 'It is drawn at the end of the training.' : 'No step was traced.'),
        tableOf('Layers', 'ops', ['layer', 'pass', 'per step', 'share', 'calls', 'GFLOP/s', 'GB/s'], () => ops.slice(0, 200).map(o => [text(o.layer) || text(o.kind),
            el('td', { class: 'left' }, text(o.pass)), duration(o.us * 1e-6), percent(o.us / all), number(o.calls, 3), o.gflops > 0 ? number(o.gflops, 3) : '', o.gb_per_s > 0 ? number(o.gb_per_s, 3) : ''])));
}

/* ---- Memory ---- */

/* Small models need less when the whole batch is held: tables and lanes are then most of the plan. The page says so. */
function verdictOf(plans) {
    const own = plans[0], items = object(own.items), tables = (items.bookkeeping || 0) + (items.scratch || 0);
    if (!(own.whole_batch_bytes > 0) || own.whole_batch_bytes >= own.peak_bytes) {
        return null;
    }
    const turn = plans.find(p => p.whole_batch_bytes > p.peak_bytes);
    return el('p', {}, el('b', {}, 'Here Batchwise takes more than holding the whole batch would: '), bytes(own.peak_bytes) + ' for a batch of ' +
        number(own.batch, 9) + ', in place of ' + bytes(own.whole_batch_bytes) + '. ' + (tables > 0 ? 'Of these, ' + bytes(tables) +
        ' are tables and scratch memory, which the other figure leaves out. ' : '') + (turn ? 'The plan does not grow with the batch: for a batch of ' +
        number(turn.batch, 12) + ' it is the smaller one.' : 'That is so even for all samples at once: the model is that small.'));
}

function memorySection(runs) {
    const run = object(runs[0].run), plans = runs.length === 1 ? list(object(run.memory).plans).values.map(object).filter(p => p.peak_bytes > 0) : [];
    if (!plans.length) {
        return null;
    }
    const own = plans[0], items = Object.entries(object(own.items)).filter(i => i[1] > 0).slice(0, 20), most = Math.max(...plans.flatMap(p => [p.peak_bytes, p.whole_batch_bytes || 0]));
    const colors = ['var(--c0)', 'var(--c1)', 'var(--c2)', 'var(--c3)', 'var(--c4)', 'var(--c5)', 'var(--c6)', '#8cc63f', '#b08968', '#4b5563', 'var(--k-overhead)'];
    const blocks = items.map(([name, size], k) => [name, size, colors[k % colors.length], bytes(size)]);
    const bar = (name, size, color, what) => el('tr', { class: name ? 'first' : null }, el('th', { scope: 'row', class: 'left' }, name), el('td', { class: 'left' }, what),
        el('td', { class: 'length' }, el('i', { style: 'background:' + color + ';width:' + (100 * size / most).toFixed(2) + '%' })), el('td', {}, bytes(size)));
    const planned = object(run.plan).planned_bytes, more = planned - own.peak_bytes;
    return section('Memory', el('p', {}, 'Planned before the first step: ' + bytes(planned) + (more > 0 ? ', of which ' + bytes(more) +
            ' are for saving the model and for tracing steps' : '') + '. Measured: ' + bytes(object(run.result).peak_bytes) + '.'),
        stack('Plan for a batch of ' + own.batch, blocks),
        el('div', { class: 'charts', style: 'margin-top:16px' },
            table(['item', 'bytes', 'share'], blocks.map(b => [el('span', {}, el('span', { class: 'box', style: 'background:' + b[2] }), b[0]), b[3], percent(b[1] / own.peak_bytes)]), 'The plan for a batch of ' + number(own.batch, 9)),
            el('div', {}, el('p', { class: 'soft' }, 'A batch is cut into tiles, so memory does not grow with it. Below it, what a system needs that holds the whole batch and takes it through each layer.'),
                el('table', { class: 'bars' }, el('caption', { class: 'sr' }, 'Memory by batch size'), el('tbody', {}, plans.map(p => [
                    bar('batch ' + number(p.batch, 12), p.peak_bytes, 'var(--c0)', 'Batchwise'),
                    p.whole_batch_bytes > 0 ? bar('', p.whole_batch_bytes, 'var(--c1)', 'whole batch') : null]))),
                verdictOf(plans))));
}

/* ---- The choice of a batch size ---- */

/* The candidates of --confirm: what each really reached, from the same state. */
function branchesOf(tuning) {
    const branches = list(tuning.branches).values.map(object).slice(0, 8);
    const series = branches.map((b, k) => ({ name: 'batch ' + number(b.batch, 12) + ', rate ' + number(b.lr, 3), color: COLORS[k % 8],
        points: list(b.points).values.map(object).filter(p => is(p.seconds) && is(p.loss)).map(p => [p.seconds, p.loss]) })).filter(s => s.points.length);
    const times = series.flatMap(c => c.points.map(p => p[0])), first = Math.min(...times), last = Math.max(...times);
    const marks = last > first ? ticks(first, last, 4).filter(t => t >= first && t <= last).map(t => [t, duration(t)]) : [];
    return series.length ? [chart('Loss of the candidates, trained from the same state', () => ({ x: 'time', where: x => 'after ' + duration(x), ticks: marks, series }))] : [];
}

/* Batch sizes are powers of two, mostly, so they stand at their logarithms. The range of a time whose upper end is not known is open. */
function tuneSection(runs) {
    const tuning = runs.length === 1 ? object(object(runs[0].run).tuning) : {};
    const rows = list(tuning.curve).values.map(object).filter(r => r.batch > 0 && is(r.batch)).sort((a, b) => a.batch - b.batch).slice(0, 64);
    if (rows.length < 2) {
        return null;
    }
    const at = r => Math.log2(r.batch), name = (r, what) => [at(r), what + ' ' + number(r.batch, 12)];
    const find = batch => rows.find(r => r.batch === batch), knee = find(tuning.knee_batch), chosen = find(tuning.recommended_batch);
    const marks = [knee && name(knee, 'knee'), chosen && name(chosen, 'recommended')].filter(Boolean);
    const common = { x: 'batch', log: true, ticks: rows.map(r => [at(r), short(r.batch)]), where: x => 'batch ' + number(Math.round(2 ** x), 12), marks };
    const timed = rows.filter(r => r.seconds > 0), points = key => timed.map(r => [at(r), r[key]]);
    const charts = [];
    if (timed.length) {
        charts.push(chart('Predicted time to the target', () => ({ ...common, series: [
            { name: '95 % interval', color: COLORS[0], band: true, points: timed.map(r => [at(r), r.seconds_low > 0 ? r.seconds_low : r.seconds, r.seconds_high]) },
            { name: 'predicted', color: COLORS[0], points: points('seconds') }] }), duration));
    }
    charts.push(chart('Measured throughput', () => ({ ...common, log: false, series: [
        { name: 'samples per second', color: COLORS[1], points: rows.filter(r => is(r.samples_per_s)).map(r => [at(r), r.samples_per_s]) }] })), ...branchesOf(tuning));
    charts.forEach(it => observer.observe(it.figure));
    const noise = is(tuning.noise_scale) ? 'Gradient noise scale: ' + number(tuning.noise_scale, 3) + ' samples (' + number(tuning.noise_scale_low, 3) + ' to ' +
        number(tuning.noise_scale_high, 3) + ', 95 %). ' : text(tuning.noise_refusal) ? 'The gradient noise scale was not measured: ' + text(tuning.noise_refusal) + '. ' : '';
    return section('Batch size', el('p', {}, tuning.decided === true ? 'Chosen: batch ' + number(tuning.recommended_batch, 12) + ' with learning rate ' +
            number(tuning.recommended_lr, 3) + '. ' : '', sentence(text(tuning.reason))),
        el('p', { class: 'soft' }, noise + (timed.length ? 'The target is a loss of ' + number(tuning.target_loss) + ', which batch ' + number(tuning.reference_batch, 12) +
            ' reached after ' + number(tuning.target_samples, 12) + ' samples; times of other batch sizes are predictions. ' : '') +
            (knee ? 'The knee is the smallest batch with 90 percent of the best throughput.' : '')),
        el('div', { class: 'charts' }, charts.map(it => it.figure)),
        tableOf('As a table', 'tuning', ['batch', 'samples/s', 'step', 'learning rate', 'steps', 'time', 'from', 'to', 'memory'], () => rows.map(r => [number(r.batch, 12),
            number(r.samples_per_s, 3), duration(r.step_us * 1e-6), number(r.lr, 3), number(r.steps, 3), duration(r.seconds), duration(r.seconds_low), duration(r.seconds_high),
            bytes(r.peak_bytes)])));
}

/* ---- Model and run ---- */

/* Lines end between words, not behind the dashes of an option. */
function commandBox(command) {
    return el('pre', {}, command.split(/(?<= )/).map(word => el('span', {}, word)));
}

function pairs(entries) {
    return el('dl', { class: 'pairs' }, entries.filter(e => e[1] !== '' && e[1] !== null && e[1] !== undefined).map(([name, value]) => [el('dt', {}, name), el('dd', {}, value)]));
}

function ratesOf(r) {
    const rates = list(object(r.steps).learning_rate).values.filter(is), last = object(object(r.run).training).learning_rate;
    const first = rates.length ? rates[0] : last;
    return is(first) ? number(first) + (is(last) && number(last) !== number(first) ? ' at the start, ' + number(last) + ' at the end' : '') : '';
}

/* Undetermined where the noise drowns the gradient: then only how large it is at least is known, if that. */
function scaleText(n) {
    return is(n.scale) ? number(n.scale, 3) + ' samples (' + number(n.low, 3) + ' to ' + number(n.high, 3) + ', 95 %)' : n.low > 0 ? 'above ' + number(n.low, 3) + ' samples; the noise drowns the gradient' :
        'undetermined: the noise drowns the gradient';
}

function noiseText(noise) {
    if (!(noise.steps > 0)) {
        return text(noise.refusal) ? 'not measured: ' + text(noise.refusal) : '';
    }
    return scaleText(noise) + (noise.of === 'optimizer' ? ' as the optimizer scales gradients; raw ' + scaleText(object(noise.raw)) : '');
}

function modelSection(runs) {
    const r = runs[0], run = object(r.run), training = object(run.training), layers = list(run.layers), noise = object(run.noise), byLayer = list(noise.layers);
    if (runs.length > 1) {
        return null;
    }
    return section('Model', run.model ? el('p', {}, el('code', {}, text(run.model))) : null,
        pairs([['optimizer', text(training.optimizer)], ['learning rate', ratesOf(r)], ['loss', list(training.losses).values.map(text).join(', ')],
            ['batch', text(training.batch)], ['gradient noise scale', noiseText(noise)], ['parameters', is(training.parameters) ? number(training.parameters, 12) : '']]),
        layers.values.length ? table(['layer', 'class', 'output', 'parameters'], layers.values.map(object).map(l => [text(l.name), el('td', { class: 'left' }, text(l.class)),
            '(' + list(l.shape).values.map(text).join(', ') + ')', number(l.parameters, 12)]), layers.of > layers.values.length ? 'Some of ' + layers.of + ' layers' : 'Layers') : null,
        byLayer.values.length ? tableOf('The gradient noise scale by layer', 'noise', ['weights', 'noise scale, raw'],
            () => byLayer.values.map(object).map(n => [text(n.name), el('td', { class: 'left' }, scaleText(n))])) : null);
}

function runSection(runs) {
    const run = object(runs[0].run), machine = object(run.machine), plan = object(run.plan), command = commandOf(run);
    if (runs.length > 1) {
        return section('Commands', runs.map(r => [el('h3', {}, nameOf(r)), commandBox(commandOf(object(r.run)))]));
    }
    const copy = el('button', { type: 'button', click: () => navigator.clipboard.writeText(command).then(() => {
        announcer.textContent = copy.textContent = 'Copied';
    }, () => {
        copy.textContent = 'Select and copy the line';
    }) }, 'Copy');
    return section('To repeat this run', commandBox(command), el('p', { style: 'margin-top:8px' }, copy),
        pairs([['seed', text(run.seed)], ['data', text(object(run.data).path)], ['data fingerprint', text(object(run.data).fingerprint)],
            ['weights', text(object(run.result).hash) + (object(run.result).hash ? ', the same on any number of workers' : '')],
            ['plan', is(plan.tile) ? 'tiles of ' + plan.tile + ' samples, ' + plan.lanes + ' lanes, ' + plan.workers + ' workers' : ''],
            ['machine', machine.system ? text(machine.system) + ' ' + text(machine.architecture) + ', ' + text(machine.cpus) + ' CPUs, ' + bytes(machine.memory_bytes) : ''],
            ['Batchwise', text(run.version)]]));
}

/* ---- Several runs ---- */

function compareSection(runs) {
    if (runs.length < 2) {
        return null;
    }
    const names = [...new Set(runs.flatMap(r => Object.keys(object(object(object(r.run).result).last))))].filter(n => n !== 'learning_rate' && n !== 'noise_scale').sort((a, b) =>
        b.startsWith('val_') - a.startsWith('val_') || (a < b ? -1 : 1)).slice(0, 12);
    const settings = { optimizer: t => t.optimizer, batch: t => t.batch, loss: t => list(t.losses).values.join(', ') };
    const differ = Object.keys(settings).filter(k => new Set(runs.map(r => text(settings[k](object(object(r.run).training))))).size > 1);
    return section('Results', table(['run', ...names, 'epochs', 'steps', 'time', 'samples/s', 'peak memory', ...differ], runs.map((r, k) => {
        const run = object(r.run), result = object(run.result), last = object(result.last), training = object(run.training);
        return [el('span', {}, el('span', { class: 'box', style: 'background:' + COLORS[k % 8] }), nameOf(r)), ...names.map(n => valueText(n, last[n])),
            number(result.epochs, 9), number(result.steps, 12), duration(result.seconds), number(result.samples_per_s, 3), bytes(result.peak_bytes),
            ...differ.map(n => text(settings[n](training)))];
    }), 'Values of the last epoch'));
}

/* ---- The page ---- */

function section(title, ...children) {
    return el('section', { 'aria-label': title }, title ? el('h2', {}, title) : null, children);
}

const SECTIONS = [headSection, compareSection, findingsSection, learningSection, predictionSection, tuneSection, timeSection, memorySection, modelSection, runSection];

function draw(make) {
    if (!data.runs.length) {
        return make === headSection ? [el('h1', {}, 'The training has not begun yet.')] : [];
    }
    try {
        return [make(data.runs)].flat().filter(Boolean);
    } catch (error) {
        return [section(null, el('p', { class: 'soft' }, 'A part of this page cannot be drawn, since a file of the run holds something unexpected: ' + error.message))];
    }
}

const places = SECTIONS.map(() => el('div', {}));

function drawAll(keep) {
    SECTIONS.forEach((make, k) => {
        if (keep && make === learningSection && learningSection.refresh && places[k].children.length && learningSection.refresh(data.runs)) {
            return;
        }
        const open = new Set([...places[k].querySelectorAll('details[open]')].map(d => d.dataset.key));
        for (let c = chartsOfPage.length - 1; c >= 0; c--) {
            if (places[k].contains(chartsOfPage[c].figure)) {
                observer.unobserve(chartsOfPage[c].figure);
                chartsOfPage.splice(c, 1);
            }
        }
        places[k].replaceChildren(...draw(make));
        places[k].querySelectorAll('details').forEach(d => {
            d.open = open.has(d.dataset.key);
        });
    });
}

/* A live page gets the whole state with every event, so a lost one does no harm; the browser connects again by itself. */
function watch() {
    const source = new EventSource('events');
    source.onmessage = e => {
        data = Object.assign(JSON.parse(e.data), { live: true });
        data.runs = list(data.runs).values.map(object);
        drawAll(true);
        if (data.over) {
            source.close();
        }
    };
    source.onerror = () => {
        const live = document.getElementById('live');
        if (live && !data.over) {
            live.textContent = 'No connection: the training is over, or was stopped.';
            live.classList.add('over');
        }
    };
}

data.runs = list(data.runs).values.map(object);
document.querySelector('main').replaceChildren(...places, el('footer', {}, 'Batchwise ' + text(data.version)), announcer);
drawAll(false);
document.title = (document.querySelector('h1') || document.querySelector('main')).textContent + ' – Batchwise';
if (data.live && !data.over) {
    watch();
}
